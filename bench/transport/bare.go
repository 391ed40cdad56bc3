package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/weirflow/weir/bench/pairs"
)

const headBytes = 24 // of a message: length and padding

// tcp is the bare loop: messages of a head and a segment, by writev.
type tcp struct {
	work   string
	conn   net.Conn
	child  *child
	head   [headBytes]byte
	b      []byte
	counts counter
}

func startTCP(work string) receiver {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	from := startChild("-of", "tcp", "-work", work, "-peer", l.Addr().String())
	c, err := l.Accept()
	must(err)
	return &tcp{work: work, conn: c, child: from, b: make([]byte, segmentBytes), counts: counter{}}
}

func (t *tcp) sender() *child { return t.child }

func (t *tcp) sample(units int) pairs.Sample {
	return pairs.Wall(float64(units), func() {
		t.child.ask(units)
		for left := units; left > 0; {
			left -= t.receive()
		}
		t.child.answer()
	})
}

// receive takes one message and returns how many units it brought.
func (t *tcp) receive() int {
	_, err := io.ReadFull(t.conn, t.head[:])
	must(err)
	n := int(binary.LittleEndian.Uint32(t.head[:]))
	_, err = io.ReadFull(t.conn, t.b[:n])
	must(err)
	if t.work != "count" {
		return 1
	}
	units := 0
	for b := t.b[:n]; len(b) > 0; units++ {
		size := int(binary.LittleEndian.Uint32(b))
		t.counts.add(b[20 : 20+size])
		b = b[20+size:]
	}
	return units
}

// sendTCP is the sending child: it sends as many units as it is asked for.
func sendTCP(work, peer string) {
	c, err := net.Dial("tcp", peer)
	must(err)
	s := &tcpSender{conn: c, g: newGenerator(), b: make([]byte, segmentBytes)}
	requests := bufio.NewReader(os.Stdin)
	for {
		var units int
		if _, err := fmt.Fscanln(requests, &units); err != nil {
			return
		}
		before := pairs.ProcessCPU()
		for left := units; left > 0; {
			if work == "count" {
				left -= s.fill(left)
			} else {
				s.n = segmentBytes
				left--
			}
			s.send()
		}
		said(before)
	}
}

type tcpSender struct {
	conn net.Conn
	g    *generator
	head [headBytes]byte
	b    []byte
	n    int
	vec  [2][]byte
}

// fill makes as many of left records as fit.
func (s *tcpSender) fill(left int) (units int) {
	const size = 20 + keyBytes + valueBytes
	s.n = 0
	for s.n+size <= len(s.b) && units < left {
		hash := s.g.next()
		d := s.b[s.n : s.n+size]
		binary.LittleEndian.PutUint32(d, keyBytes+valueBytes)
		binary.LittleEndian.PutUint64(d[4:], hash)
		binary.LittleEndian.PutUint64(d[12:], s.g.n)
		copy(d[20:], s.g.record[:])
		s.n += size
		units++
	}
	return units
}

func (s *tcpSender) send() {
	binary.LittleEndian.PutUint32(s.head[:], uint32(s.n))
	s.vec = [2][]byte{s.head[:], s.b[:s.n]}
	v := net.Buffers(s.vec[:])
	_, err := v.WriteTo(s.conn)
	must(err)
}
