program copy2 ir 1 target c x86-64-v3
  size N = 1000
  param x: f32[N]
  param y: f32[N] out
launch main grid b = 4
  for i in 0..floor(250/8):
    y[c in b*250 + i*8 +: 8] = x[c] vector 8
  for i in floor(250/8)*8..250:
    y[b*250 + i] = x[b*250 + i]
