"""Real work for trying Mainspring out: five job types, a webhook receiver, and a gentle stream that keeps them busy."""
