"""decoys"""
