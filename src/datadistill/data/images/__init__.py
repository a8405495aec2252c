"""Images: files decoded in worker processes, conversions, augmentation."""
