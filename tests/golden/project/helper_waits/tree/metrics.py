def overlap(output, target):
    output = (output > 0).cpu().numpy()
    target = target.cpu().numpy()
    return (output & target).sum() / (output | target).sum()
