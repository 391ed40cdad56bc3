package file

import "encoding/binary"

// Versions that begin what is encoded.
const (
	splitVersion = 1
	listVersion  = 1
	eventVersion = 1
)

// Kinds of an enumerator's events.
const (
	eventSplits = 's'
	eventEnd    = 'e'
	request     = 'r' // a reader's only event
)

// Bounds of what is read out of snapshots and events.
const (
	maxPathBytes = 4096
	maxBatch     = 256     // splits in one event
	maxFiles     = 1 << 20 // in a listing
	maxListBytes = 32 << 20
)

// span is a range of a file: the lines that begin in [Start, End).
type span struct {
	path string
	// size is the file's length when it was listed; nothing behind it is read.
	size       int64
	start, end int64
	// pos is where the next line begins; before the split's first line was looked for,
	// it is start.
	pos int64
	// begun says that pos is the beginning of a line.
	begun bool
}

func (s *span) append(b []byte) []byte {
	b = append(b, splitVersion)
	b = binary.AppendUvarint(b, uint64(len(s.path)))
	b = append(b, s.path...)
	for _, v := range [...]int64{s.size, s.start, s.end, s.pos} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	if s.begun {
		return append(b, 1)
	}
	return append(b, 0)
}

// decoder reads what append wrote. After the first fault it reads zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// number reads a number of at most limit.
func (d *decoder) number(limit uint64) int64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return int64(v)
}

func (d *decoder) text() string {
	n := d.number(maxPathBytes)
	if int(n) > len(d.b) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) span() (s span) {
	const most = 1<<63 - 1
	if d.byte() != splitVersion {
		d.bad = true
	}
	s.path = d.text()
	s.size, s.start, s.end, s.pos = d.number(most), d.number(most), d.number(most), d.number(most)
	begun := d.byte()
	s.begun = begun == 1
	if begun > 1 || s.start >= s.end || s.end > s.size || s.pos < s.start || s.pos > s.size || s.path == "" || !s.begun && s.pos != s.start {
		d.bad = true
	}
	return s
}

func parseSpan(b []byte) (span, error) {
	d := decoder{b: b}
	s := d.span()
	if d.bad || len(d.b) != 0 {
		return span{}, badState("a split of %d bytes cannot be read", len(b))
	}
	return s, nil
}

// appendAssignment encodes an enumerator's answer: splits, or the end if there are none.
func appendAssignment(b []byte, splits []span) []byte {
	if len(splits) == 0 {
		return append(b, eventVersion, eventEnd)
	}
	b = append(b, eventVersion, eventSplits)
	b = binary.AppendUvarint(b, uint64(len(splits)))
	for i := range splits {
		b = splits[i].append(b)
	}
	return b
}

func parseAssignment(b []byte) (splits []span, end bool, err error) {
	d := decoder{b: b}
	if d.byte() != eventVersion {
		d.bad = true
	}
	switch d.byte() {
	case eventEnd:
		end = true
	case eventSplits:
		for range d.number(maxBatch) {
			splits = append(splits, d.span())
			if d.bad {
				break
			}
		}
	default:
		d.bad = true
	}
	if d.bad || len(d.b) != 0 || !end && len(splits) == 0 {
		return nil, false, badState("an event of the enumerator of %d bytes cannot be read", len(b))
	}
	return splits, end, nil
}

// listed is a file that was found, of which the rest from next on is not assigned.
type listed struct {
	path       string
	size, next int64
}

func appendList(b []byte, files []listed) []byte {
	b = append(b, listVersion)
	b = binary.AppendUvarint(b, uint64(len(files)))
	for i := range files {
		f := &files[i]
		b = binary.AppendUvarint(b, uint64(len(f.path)))
		b = append(b, f.path...)
		b = binary.AppendUvarint(b, uint64(f.size))
		b = binary.AppendUvarint(b, uint64(f.next))
	}
	return b
}

func parseList(b []byte) ([]listed, error) {
	const most = 1<<63 - 1
	d := decoder{b: b}
	if d.byte() != listVersion {
		d.bad = true
	}
	var files []listed
	for range d.number(maxFiles) {
		f := listed{path: d.text(), size: d.number(most), next: d.number(most)}
		if d.bad || f.path == "" || f.next >= f.size {
			d.bad = true
			break
		}
		files = append(files, f)
	}
	if d.bad || len(d.b) != 0 {
		return nil, badState("an enumerator's state of %d bytes cannot be read", len(b))
	}
	return files, nil
}
