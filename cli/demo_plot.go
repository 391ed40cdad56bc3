package cli

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of the picture.
const (
	plotWidth   = 800
	plotHeight  = 400
	legendWidth = 240
	textSize    = 12
)

// Colours are of medium lightness and the background is transparent, so that the
// picture can be read on white and on black: each is at least 3 : 1 against both.
var (
	plotText  = color.NRGBA{R: 0x7d, G: 0x85, B: 0x90, A: 0xff}
	plotGrid  = color.NRGBA{R: 0x7d, G: 0x85, B: 0x90, A: 0x50}
	plotModes = []mark{
		{color.NRGBA{R: 0x2a, G: 0x96, B: 0x4c, A: 0xff}, draw.CircleGlyph{}},
		{color.NRGBA{R: 0xe0, G: 0x43, B: 0x5c, A: 0xff}, draw.BoxGlyph{}},
		{color.NRGBA{R: 0x3b, G: 0x82, B: 0xd6, A: 0xff}, draw.PyramidGlyph{}},
		{color.NRGBA{R: 0xa2, G: 0x59, B: 0xd9, A: 0xff}, draw.TriangleGlyph{}},
		{color.NRGBA{R: 0x0e, G: 0x94, B: 0xa0, A: 0xff}, draw.RingGlyph{}},
		{color.NRGBA{R: 0xd0, G: 0x6c, B: 0x0c, A: 0xff}, draw.SquareGlyph{}},
	}
)

// mark is how a mode's checkpoints look; neither colour nor shape alone tells them apart.
type mark struct {
	color color.NRGBA
	shape draw.GlyphDrawer
}

// checkPlot finds out before the experiment whether its picture can be written.
func checkPlot(path string) error {
	if filepath.Ext(path) != ".svg" {
		return usageError{fmt.Errorf("--plot %s: the picture is an SVG, so the name must end in .svg", path)}
	}
	info, err := os.Stat(filepath.Dir(path))
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return usageError{fmt.Errorf("--plot %s: its directory: %w", path, err)}
	}
	_, err = os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644) // what it holds stays until there is a new picture
	if err != nil {
		return usageError{fmt.Errorf("--plot cannot be written: %w", err)}
	}
	if err := f.Close(); err != nil {
		return usageError{fmt.Errorf("--plot cannot be written: %w", err)}
	}
	if isNew {
		return os.Remove(path)
	}
	return nil
}

// writePlot draws the rows into a file.
func writePlot(path string, rows []demoRow) error {
	svg, err := drawPlot(rows)
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return os.WriteFile(path, svg, 0o644)
}

// drawPlot draws durations by checkpoint, a line for each mode, with a logarithmic
// axis. Flink's are dashed.
func drawPlot(rows []demoRow) ([]byte, error) {
	p, legend := newPlot(), plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, 6
	setText(&legend.TextStyle.Font, &legend.TextStyle.Color)
	var published bool
	for _, g := range byMode(rows) {
		m := g[0].mode
		style := markOf(m)
		line, points, err := plotter.NewLinePoints(plotPoints(durations(g)))
		if err != nil {
			return nil, err
		}
		line.Width, line.Color = 1.5, style.color
		points.Color, points.Shape, points.Radius = style.color, style.shape, 3.5
		p.Add(line, points)
		legend.Add(m.name, line, points)
		if len(m.flink) == 0 {
			continue
		}
		flink, err := dashed(m.flink, style.color)
		if err != nil {
			return nil, err
		}
		p.Add(flink)
		published = true
	}
	if published {
		sample, err := dashed(nil, plotText)
		if err != nil {
			return nil, err
		}
		legend.Add("Flink 2.3.0, on a laptop", sample)
	}
	setRanges(p)
	return render(p, legend)
}

func markOf(m *demoMode) mark {
	for i := range demoModes {
		if m == &demoModes[i] {
			return plotModes[i%len(plotModes)]
		}
	}
	return plotModes[0]
}

// dashed is a line without points for durations that are not ours.
func dashed(values []time.Duration, c color.Color) (*plotter.Line, error) {
	points := plotPoints(values)
	if len(points) == 0 {
		return &plotter.Line{LineStyle: dashes(c)}, nil // for the legend
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.LineStyle = dashes(c)
	return line, nil
}

func dashes(c color.Color) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: 1, Dashes: []vg.Length{4, 4}}
}

// plotPoints are the values, in milliseconds, at 1, 2, 3 and so on.
func plotPoints(values []time.Duration) plotter.XYs {
	var points plotter.XYs
	for i, d := range values {
		points = append(points, plotter.XY{X: float64(i + 1), Y: max(millisOf(d), 0.01)}) // a logarithm wants more than 0
	}
	return points
}

// newPlot is an empty picture with axes.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.Title.Text, p.Title.Padding = "Duration of a checkpoint", 10
	p.X.Label.Text = "checkpoint"
	setText(&p.Title.TextStyle.Font, &p.Title.TextStyle.Color)
	p.Title.TextStyle.Font.Size = textSize + 2
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		setText(&axis.Label.TextStyle.Font, &axis.Label.TextStyle.Color)
		setText(&axis.Tick.Label.Font, &axis.Tick.Label.Color)
		axis.Color, axis.Tick.Color = plotText, plotText
		axis.Padding = 6
	}
	p.Y.Scale = plot.LogScale{}
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal = draw.LineStyle{Color: plotGrid, Width: 0.5}
	p.Add(grid)
	return p
}

func setText(f *font.Font, c *color.Color) {
	f.Typeface, f.Variant, f.Size, *c = "Liberation", "Sans", textSize, plotText
}

// setRanges ends the axes at whole checkpoints and at powers of ten.
func setRanges(p *plot.Plot) {
	p.X.Min, p.X.Max = 1, max(p.X.Max, demoCheckpoints)
	var x, y plot.ConstantTicks
	for n := 1; float64(n) <= p.X.Max; n++ {
		x = append(x, plot.Tick{Value: float64(n), Label: strconv.Itoa(n)})
	}
	low, high := int(math.Floor(math.Log10(p.Y.Min))), int(math.Ceil(math.Log10(p.Y.Max)))
	high = max(high, low+1)
	p.Y.Min, p.Y.Max = math.Pow10(low), math.Pow10(high)
	for power := low; power <= high; power++ {
		d := time.Duration(math.Pow10(power) * float64(time.Millisecond))
		y = append(y, plot.Tick{Value: math.Pow10(power), Label: tickText(d)})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = x, y
}

// tickText is a duration of a power of ten.
func tickText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%d s", int64(d.Seconds()))
	}
}

// render draws the picture with its legend on the right.
func render(p *plot.Plot, legend plot.Legend) ([]byte, error) {
	canvas := vgsvg.New(plotWidth, plotHeight)
	all := draw.New(canvas)
	p.Draw(draw.Crop(all, 8, -legendWidth, 8, -8))
	legend.Draw(draw.Crop(all, plotWidth-legendWidth+12, 0, 0, -42))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	// Where that font is not installed, one of the same widths is.
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}
