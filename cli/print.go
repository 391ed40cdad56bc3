package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// printJSON writes one value on one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints rows in columns; a cell that begins with a tab is set to the right.
type table struct {
	rows [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// right marks a cell to be set to the right.
func right(s string) string { return "\t" + s }

func (t *table) print(w io.Writer) {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(strings.TrimPrefix(c, "\t")))
		}
	}
	for _, r := range t.rows {
		var line strings.Builder
		for i, c := range r {
			text, toRight := strings.CutPrefix(c, "\t")
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if i > 0 {
				line.WriteString("  ")
			}
			if toRight {
				line.WriteString(pad + text)
			} else {
				line.WriteString(text + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// bytesText is a size for people, in powers of 1024.
func bytesText(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n), "KMGTPE"
	i := -1
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// durationText is a duration for people with about three digits.
func durationText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Minute:
		return fmt.Sprintf("%.2f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}

func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// when is a time for people, in the local zone.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// stamp is a time for programs.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// progress is a line that moves on a terminal and is printed on changes elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	width    int
	last     string
}

func (a *app) progress() *progress {
	return &progress{w: a.streams.Err, terminal: a.streams.Terminal, width: a.streams.Width}
}

// show replaces the line. elsewhere says what to print where lines cannot move; an
// equal text is not repeated there.
func (p *progress) show(line, elsewhere string) {
	if !p.terminal {
		if elsewhere != "" && elsewhere != p.last {
			fmt.Fprintln(p.w, elsewhere)
			p.last = elsewhere
		}
		return
	}
	if p.width > 1 && utf8.RuneCountInString(line) >= p.width {
		line = string([]rune(line)[:p.width-1])
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.last = line
}

// done ends the moving line.
func (p *progress) done() {
	if p.terminal && p.last != "" {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.last = ""
	}
}
