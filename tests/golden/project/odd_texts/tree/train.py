# -*- coding: latin-1 -*-
# größer, naïve: bytes and columns differ
import torch
from torch.utils.data import DataLoader	# a tab
NAME = "é"; WORKERS = 3
def train(model):
	loader = DataLoader(["é", NAME], batch_size=4, num_workers=WORKERS,  # é
			pin_memory=(True)  # no comma
	)
	optimizer = torch.optim.SGD(p for p in model.parameters())
	other = torch.optim.AdamW(
		model.parameters(), lr=1e-3, # last, with a comma
	)
	for x in loader:
		loss = model(x.cuda()).sum(); loss.backward(); optimizer.step(); other.step(); print("é", loss.item())
if __name__ == "__main__":
	train(torch.nn.Linear(1, 1).cuda())
