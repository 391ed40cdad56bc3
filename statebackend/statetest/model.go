package statetest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir/statebackend"
)

// model drives both tables of a backend and the maps that they should equal.
type model struct {
	s     Subject
	b     statebackend.Backend
	tabs  [2]statebackend.Table
	want  [2]contents
	hash  func(key []byte) uint64
	snaps []modelSnapshot
}

type modelSnapshot struct {
	snap statebackend.Snapshot
	want [2]contents
}

func testModel(t *testing.T, s Subject) { runModel(t, s, hash) }

// Keys whose hashes agree in all bits must still be told apart.
func testModelCollisions(t *testing.T, s Subject) {
	runModel(t, s, func(key []byte) uint64 { return hash(key[:1]) })
}

func runModel(t *testing.T, s Subject, hash func(key []byte) uint64) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{s: s, hash: hash, want: [2]contents{{}, {}}}
		m.b, m.tabs[0], m.tabs[1] = backend(t, s, allGroups)
		t.Repeat(map[string]func(*rapid.T){
			"put":      m.put,
			"many":     m.putMany,
			"slot":     m.slot,
			"get":      m.get,
			"delete":   m.remove,
			"clear":    m.removeMany,
			"prefetch": m.prefetch,
			"snapshot": m.snapshot,
			"release":  m.release,
			"":         m.check,
		})
		for len(m.snaps) > 0 {
			m.release(t)
		}
		ok(t, m.b.Close())
	})
}

func (m *model) ref(key, namespace string) statebackend.Ref {
	return statebackend.Ref{Hash: m.hash([]byte(key)), Key: []byte(key), Namespace: []byte(namespace)}
}

var (
	someKeys       = rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("k%d", rapid.IntRange(0, 40).Draw(t, "key")) })
	someNamespaces = rapid.SampledFrom([]string{"", "", "", "w1", "w2", "a window with a long name", strings.Repeat("n", 300)})
	someSizes      = rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 600), rapid.IntRange(3900, 4200), rapid.IntRange(0, 13000))
)

// draw chooses a table, an entry and a value for it.
func (m *model) draw(t *rapid.T) (i int, at [2]string, value string) {
	i = rapid.IntRange(0, 1).Draw(t, "table")
	at = [2]string{someKeys.Draw(t, "key"), someNamespaces.Draw(t, "namespace")}
	n := 16
	if i == 1 {
		n = someSizes.Draw(t, "size")
	}
	c := rapid.ByteRange('a', 'z').Draw(t, "filling")
	return i, at, strings.Repeat(string(rune(c)), n)
}

func (m *model) put(t *rapid.T) {
	i, at, value := m.draw(t)
	m.tabs[i].Put(m.ref(at[0], at[1]), statebackend.Hint{}, []byte(value))
	m.want[i][at] = value
}

func (m *model) putMany(t *rapid.T) {
	i, at, value := m.draw(t)
	value = value[:min(len(value), 100)]
	for j := range rapid.IntRange(1, 300).Draw(t, "n") {
		at[1] = fmt.Sprintf("ns%d", j)
		m.tabs[i].Put(m.ref(at[0], at[1]), statebackend.Hint{}, []byte(value))
		m.want[i][at] = value
	}
}

func (m *model) slot(t *rapid.T) {
	_, at, _ := m.draw(t)
	m.change(t, at, statebackend.Hint{})
}

// change changes a value of the fixed-size table in place.
func (m *model) change(t *rapid.T, at [2]string, hint statebackend.Hint) {
	before, there := m.want[0][at]
	ref := m.ref(at[0], at[1])
	v, created := []byte(nil), false
	if p, ok := m.tabs[0].(statebackend.Plain); ok && at[1] == "" {
		v, created = p.SlotPlain(ref.Hash, ref.Key, hint)
	} else {
		v, created = m.tabs[0].Slot(ref, hint)
	}
	if created == there {
		t.Fatalf("slot of %q: created %v, was there %v", at, created, there)
	}
	if !there {
		before = strings.Repeat("\x00", 16)
	}
	if string(v) != before {
		t.Fatalf("slot of %q: %q, want %q", at, v, before)
	}
	v[3]++
	m.want[0][at] = string(v)
}

func (m *model) get(t *rapid.T) {
	i, at, _ := m.draw(t)
	m.same(t, i, at, statebackend.Hint{})
}

func (m *model) same(t *rapid.T, i int, at [2]string, hint statebackend.Hint) {
	v, ok := m.tabs[i].Get(m.ref(at[0], at[1]), hint)
	want, there := m.want[i][at]
	if ok != there || string(v) != want {
		t.Fatalf("table %d, %.40q: got %.40q, %v; want %.40q, %v", i, at, v, ok, want, there)
	}
	if p, plain := m.tabs[i].(statebackend.Plain); plain && at[1] == "" {
		ref := m.ref(at[0], "")
		if v, ok := p.GetPlain(ref.Hash, ref.Key, hint); ok != there || string(v) != want {
			t.Fatalf("table %d, %.40q: got plainly %.40q, %v; want %.40q, %v", i, at, v, ok, want, there)
		}
	}
}

func (m *model) remove(t *rapid.T) {
	i, at, _ := m.draw(t)
	_, there := m.want[i][at]
	if m.tabs[i].Delete(m.ref(at[0], at[1])) != there {
		t.Fatalf("delete of %.40q: was there %v", at, there)
	}
	delete(m.want[i], at)
}

func (m *model) removeMany(t *rapid.T) {
	i, first, _ := m.draw(t)
	share := rapid.SampledFrom([]string{"", "ns", "ns1", "w"}).Draw(t, "which")
	for at := range maps.Clone(m.want[i]) {
		if at[0] == first[0] && strings.HasPrefix(at[1], share) {
			if !m.tabs[i].Delete(m.ref(at[0], at[1])) {
				t.Fatalf("delete of %.40q: was not there", at)
			}
			delete(m.want[i], at)
		}
	}
}

// prefetch takes hints for some keys, changes entries between and uses them all.
func (m *model) prefetch(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "table")
	keys := rapid.SliceOfN(someKeys, 0, 150).Draw(t, "keys")
	hashes := make([]uint64, len(keys))
	for j, k := range keys {
		hashes[j] = m.hash([]byte(k))
	}
	hints := make([]statebackend.Hint, len(keys))
	m.tabs[i].Prefetch(hashes, hints)
	for j, k := range keys {
		at := [2]string{k, ""}
		m.same(t, i, at, hints[j])
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			m.tabs[i].Delete(m.ref(k, ""))
			delete(m.want[i], at)
		case 1, 2, 3:
			value := strings.Repeat("p", 16)
			m.tabs[i].Put(m.ref(k, ""), hints[j], []byte(value))
			m.want[i][at] = value
		case 4:
			m.put(t)
		case 6:
			if i == 0 {
				m.change(t, at, hints[j])
			}
		case 5:
			v, _ := m.tabs[0].Get(m.ref(k, "w1"), statebackend.Hint{})
			if string(v) != m.want[0][[2]string{k, "w1"}] {
				t.Fatalf("namespace of %q: got %q", k, v)
			}
		}
	}
}

func (m *model) snapshot(t *rapid.T) {
	if len(m.snaps) == 3 {
		m.release(t)
	}
	m.snaps = append(m.snaps, modelSnapshot{
		snap: snapshot(t, m.b),
		want: [2]contents{maps.Clone(m.want[0]), maps.Clone(m.want[1])},
	})
}

// release ends one of the outstanding snapshots, mostly after it was written.
func (m *model) release(t *rapid.T) {
	if len(m.snaps) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.snaps)-1).Draw(t, "which")
	x := m.snaps[i]
	m.snaps = append(m.snaps[:i:i], m.snaps[i+1:]...)
	if rapid.IntRange(0, 3).Draw(t, "write") > 0 {
		stream := written(t, x.snap)
		count, text := restored(t, m.s, allGroups, handle(m.s, allGroups, stream))
		equal(t, "snapshot of count", count, x.want[0])
		equal(t, "snapshot of text", text, x.want[1])
	}
	x.snap.Release()
}

func (m *model) check(t *rapid.T) {
	for i := range m.tabs {
		if m.tabs[i].Len() != len(m.want[i]) {
			t.Fatalf("table %d has %d entries, want %d", i, m.tabs[i].Len(), len(m.want[i]))
		}
		equal(t, "scan", scan(t, m.tabs[i]), m.want[i])
	}
	if st := m.b.Stats(); st.Tables != 2 || st.Entries != len(m.want[0])+len(m.want[1]) || st.Bytes < 0 || st.DeadBytes < 0 {
		t.Fatalf("stats %+v", st)
	}
}
