"""sandboxed"""
