"""replacement"""
