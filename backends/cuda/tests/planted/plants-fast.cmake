# Faults of the fast kernel, for a device alone; see plants.cmake. faults-fast.txt says where each is found.
plant(fast-meet "fast.cu" fast/meet.cuh [[while (seen < c.syncs * CTAS);]] [[while (c.syncs != 3 && seen < c.syncs * CTAS);]])
plant(fast-barrier "fast.cu" fast/meet.cuh
[=[__fsqrt_rn(sum / H + b.eps));
  }
  sync_consumers();]=]
[=[__fsqrt_rn(sum / H + b.eps));
  }
  delay();]=])
plant(fast-parts "fast.cu" fast/core.cuh [=[d[i] + (d[4 + i] + d[8 + i]);]=] [=[d[i] + d[4 + i];]=])
plant(fast-tap "fast.cu" fast/rows.cuh [[y.x += (w1.x + d1) * m.x,]] [[y.x += (w1.x + d1) * n.x,]])
plant(fast-row "fast.cu" fast/kernel.cuh [[found(number, n - 1, row);]] [[found(number, n % 2 ? n - 1 : n, row);]])
plant(fast-key "fast.cu" fast/attend.cuh [[k_at, to - start, low, sc);]] [[k_at, to - start - 1, low, sc);]])
plant(fast-cut "fast.cu" fast/attend.cuh [[smem_of(area.own_k[unit]), b.rows, low, sc);]] [[smem_of(area.own_k[unit]), ROWS, low, sc);]])
plant(fast-quarter "fast.cu" fast/kernel.cuh [=[(now[0] + now[1]) + (now[2] + now[3]),]=] [=[(now[0] + now[1]) + now[2],]=])
plant(fast-tail "fast.cu" fast/kernel.cuh
[[first + row < b.head_rows)]] [[first + row < b.head_rows / UNIT * UNIT)]])
