package localfs

import (
	"fmt"
	"io"
	"sync"
)

// Memory is a directory in memory that outlives the processes using it. Each
// process has its own [Process] of it.
type Memory struct {
	mu struct {
		sync.Mutex
		files map[string][]byte
		locks map[string]*memoryLock
	}
}

// Process is one process's view of a [Memory].
type Process struct {
	mem *Memory
}

var _ FS = (*Process)(nil)

// NewMemory returns an empty directory.
func NewMemory() *Memory {
	m := new(Memory)
	m.mu.files = make(map[string][]byte)
	m.mu.locks = make(map[string]*memoryLock)
	return m
}

// Process returns the view of a new process.
func (m *Memory) Process() *Process { return &Process{mem: m} }

// Kill ends the process: its locks are free.
func (p *Process) Kill() {
	p.mem.mu.Lock()
	defer p.mem.mu.Unlock()
	for name, l := range p.mem.mu.locks {
		if l.holder == p {
			delete(p.mem.mu.locks, name)
		}
	}
}

// Location is "memory".
func (p *Process) Location() string { return "memory" }

// Read returns a copy of the file's content.
func (p *Process) Read(name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	p.mem.mu.Lock()
	defer p.mem.mu.Unlock()
	content, ok := p.mem.mu.files[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return append([]byte{}, content...), nil
}

// WriteOnce keeps a copy of content.
func (p *Process) WriteOnce(name string, content []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	p.mem.mu.Lock()
	defer p.mem.mu.Unlock()
	if _, ok := p.mem.mu.files[name]; ok {
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	p.mem.mu.files[name] = append([]byte{}, content...)
	return nil
}

// Lock takes the lock for this process.
func (p *Process) Lock(name string) (io.Closer, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	p.mem.mu.Lock()
	defer p.mem.mu.Unlock()
	if p.mem.mu.locks[name] != nil {
		return nil, fmt.Errorf("%w: %s", ErrLocked, name)
	}
	l := &memoryLock{holder: p, name: name}
	p.mem.mu.locks[name] = l
	return l, nil
}

type memoryLock struct {
	holder *Process
	name   string
}

// Close gives the lock back, if it is still held.
func (l *memoryLock) Close() error {
	m := l.holder.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.locks[l.name] == l {
		delete(m.mu.locks, l.name)
	}
	return nil
}
