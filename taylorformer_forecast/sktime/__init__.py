"""sktime forecasters and skpro distributions."""
