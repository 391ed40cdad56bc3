package fs

// FailTemp makes temporary files fail at "write", "sync" or "close".
func (s *Store) FailTemp(at string, err error) {
	s.wrap = func(f tempFile) tempFile { return &failingFile{tempFile: f, at: at, err: err} }
}

// Probe is what Open does to see whether the directory can be written.
func (s *Store) Probe() error { return s.probe() }

type failingFile struct {
	tempFile
	at  string
	err error
}

func (f *failingFile) Write(p []byte) (int, error) {
	if f.at == "write" {
		return 0, f.err
	}
	return f.tempFile.Write(p)
}

func (f *failingFile) Sync() error {
	if f.at == "sync" {
		return f.err
	}
	return f.tempFile.Sync()
}

func (f *failingFile) Close() error {
	err := f.tempFile.Close()
	if f.at == "close" {
		return f.err
	}
	return err
}
