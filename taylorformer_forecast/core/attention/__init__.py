"""Multi-head attention: the layer, its kernels, and the cache of sampling."""
