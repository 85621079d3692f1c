"""hardening"""
