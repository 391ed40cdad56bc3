package checkpointing

import (
	"math"
	"slices"
)

// Quantiles sums up one figure over several snapshots. A quantile q is the smallest
// of the values that at least q of them do not exceed (the nearest rank): always a value
// that occurred. Of no values all are 0.
type Quantiles struct {
	Count                                  int
	Min, Max, Average, P50, P90, P99, P999 float64
}

// Summary sums up the completed snapshots among those that are remembered: durations in
// seconds, sizes in bytes. Those of tasks are the longest of each snapshot.
type Summary struct {
	Duration, Bytes, NewBytes, AlignedBytes, PersistedBytes Quantiles
	StartDelay, Alignment, Sync, Async                      Quantiles
}

// Summary is over the completed ones of Recent.
func (s Statistics) Summary() Summary {
	var columns [9][]float64
	for i := range s.Recent {
		x := &s.Recent[i]
		if x.Status != Completed {
			continue
		}
		var worst VertexStatistics
		for _, v := range x.Vertices {
			worst.StartDelay = max(worst.StartDelay, v.StartDelay)
			worst.Alignment = max(worst.Alignment, v.Alignment)
			worst.Sync = max(worst.Sync, v.Sync)
			worst.Async = max(worst.Async, v.Async)
			worst.AlignedBytes += v.AlignedBytes
		}
		for k, value := range [9]float64{
			x.Duration.Seconds(), float64(x.Bytes), float64(x.NewBytes), float64(worst.AlignedBytes), float64(x.PersistedBytes),
			worst.StartDelay.Seconds(), worst.Alignment.Seconds(), worst.Sync.Seconds(), worst.Async.Seconds(),
		} {
			columns[k] = append(columns[k], value)
		}
	}
	return Summary{
		Duration: quantiles(columns[0]), Bytes: quantiles(columns[1]), NewBytes: quantiles(columns[2]),
		AlignedBytes: quantiles(columns[3]), PersistedBytes: quantiles(columns[4]), StartDelay: quantiles(columns[5]),
		Alignment: quantiles(columns[6]), Sync: quantiles(columns[7]), Async: quantiles(columns[8]),
	}
}

// quantiles sorts the values and sums them up.
func quantiles(values []float64) Quantiles {
	n := len(values)
	if n == 0 {
		return Quantiles{}
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	// 1e-9 keeps what ought to be a whole number, such as 0.9 × 10, from being rounded up.
	rank := func(q float64) float64 { return values[max(int(math.Ceil(q*float64(n)-1e-9)), 1)-1] }
	return Quantiles{
		Count: n, Min: values[0], Max: values[n-1], Average: sum / float64(n),
		P50: rank(0.5), P90: rank(0.9), P99: rank(0.99), P999: rank(0.999),
	}
}
