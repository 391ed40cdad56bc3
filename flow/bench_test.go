package flow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/operator"
)

type visit struct {
	User   string
	Filler string
}

func countVisits() flow.Job {
	return define(func(g *flow.Graph) {
		in := flow.Map(flow.From(g, "in", numbers(1<<40)), "visit", func(v int) visit {
			return visit{User: users[v%len(users)], Filler: filler}
		})
		k := flow.KeyBy(in, "by-user", func(v visit) string { return v.User })
		flow.Process(k, "count", func(s *flow.Setup) flow.Processor[string, visit, int] {
			n := flow.NewValue[int64](s, "n")
			return flow.ProcessFunc[string, visit, int](func(*flow.Context[string], visit, *flow.Out[int]) error {
				n.Update(func(n *int64) { *n++ })
				return nil
			})
		})
	})
}

var (
	filler = strings.Repeat("x", 80)
	users  = func() []string {
		list := make([]string, 50_000)
		for i := range list {
			list[i] = fmt.Sprintf("user-%011d", i*2654435761%1_000_000)
		}
		return list
	}()
)

// BenchmarkKeyedProducer is key, encode and hash of 100-byte records.
func BenchmarkKeyedProducer(b *testing.B) {
	task := flowtest.Open(b, countVisits(), nil, flowtest.Options{})
	task.Outputs[0].CountOnly = true
	b.ReportAllocs()
	for b.Loop() {
		task.Poll(operator.BatchSize)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/operator.BatchSize, "ns/record")
}

// BenchmarkKeyedCount is decode, key, state and count of 100-byte records with
// 50,000 keys, drawn at random.
func BenchmarkKeyedCount(b *testing.B) {
	task := flowtest.Open(b, countVisits(), nil, flowtest.At("count"))
	values, err := codec.For[visit]()
	if err != nil {
		b.Fatal(err)
	}
	keys, err := codec.ForKey[string]()
	if err != nil {
		b.Fatal(err)
	}
	batches := make([]operator.Batch, 1<<8)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range batches {
		batch := &batches[i]
		batch.N = operator.BatchSize
		for j := range batch.N {
			v := visit{users[random.IntN(len(users))], filler}
			key, _ := keys.Append(nil, &v.User)
			batch.Hash[j] = codec.Hash(key)
			batch.Payload[j], _ = values.Append(nil, &v)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		batch := &batches[i%len(batches)]
		batch.Next = 0
		if err := task.Chain.Process(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/operator.BatchSize, "ns/record")
}
