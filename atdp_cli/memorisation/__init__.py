"""memorisation"""
