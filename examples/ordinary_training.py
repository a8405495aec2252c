"""Use distilled images as an ordinary torch Dataset, with any optimiser and any network."""

import torch
from torch.utils.data import DataLoader

import datadistill as dd

train, test = dd.data.load("digits")
distilled = dd.distill(
    train, dd.models.LeNet(), steps=3, iterations=30, batch_size=128, outer_lr=0.1
)

network = dd.models.LeNet()
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for _ in range(20):
    for images, labels in DataLoader(distilled, batch_size=10, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()

images, labels = test.batch(slice(None), torch.device("cpu"), torch.float32)
accuracy = (network(images).argmax(1) == labels).float().mean()
print(f"ordinary training on {len(distilled)} distilled images: {100 * float(accuracy):.1f} %")
