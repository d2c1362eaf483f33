"""What both hosts run: windows, training, calibration, pretrained networks."""
