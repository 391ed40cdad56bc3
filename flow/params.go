package flow

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/weirflow/weir/operator"
)

// paramField is one field of a job's parameter struct.
type paramField struct {
	operator.Param
	index    int
	required bool
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
)

// paramFields lists the parameters that a struct type declares; all faults are joined.
func paramFields(t reflect.Type) ([]paramField, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("parameters are a %s, want a struct", t)
	}
	var fields []paramField
	var faults []error
	seen := make(map[string]bool)
	for i := range t.NumField() {
		f, err := paramFieldOf(t.Field(i), i)
		if err == nil && seen[f.Name] {
			err = fmt.Errorf("parameter %q declared twice", f.Name)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		seen[f.Name] = true
		fields = append(fields, f)
	}
	return fields, errors.Join(faults...)
}

func paramFieldOf(sf reflect.StructField, index int) (paramField, error) {
	f := paramField{index: index}
	name, options, _ := strings.Cut(sf.Tag.Get("param"), ",")
	if name == "" {
		name = kebab(sf.Name)
	}
	f.Name, f.Help = name, sf.Tag.Get("help")
	def, hasDefault := sf.Tag.Lookup("default")
	f.Default = def
	if !sf.IsExported() {
		return f, fmt.Errorf("parameter %q: field %s is not exported", name, sf.Name)
	}
	switch options {
	case "":
	case "required":
		f.required = true
	default:
		return f, fmt.Errorf("parameter %q: unknown option %q", name, options)
	}
	f.Type = paramTypeName(sf.Type)
	if f.Type == "" {
		return f, fmt.Errorf("parameter %q: type %s is not supported", name, sf.Type)
	}
	if hasDefault {
		if err := setParam(reflect.New(sf.Type).Elem(), def); err != nil {
			return f, fmt.Errorf("parameter %q: default: %w", name, err)
		}
	}
	return f, nil
}

func paramTypeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case t == sizeType:
		return "size"
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return t.Kind().String()
	}
	return ""
}

// setParam reads text into a field of a supported type.
func setParam(v reflect.Value, text string) error {
	switch v.Type() {
	case durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 5ms or 1m30s", text)
		}
		v.SetInt(int64(d))
		return nil
	case sizeType:
		s, err := ParseSize(text)
		v.SetInt(int64(s))
		return err
	}
	return setPlainParam(v, text)
}

func setPlainParam(v reflect.Value, text string) error {
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case reflect.Float32, reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(f)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var u uint64
		u, err = strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(u)
	default:
		var i int64
		i, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
	}
	if err != nil {
		return fmt.Errorf("%q is not a %s", text, v.Kind())
	}
	return nil
}

// decodeParams fills the struct that v is from text. All faults are joined and wrap
// [operator.ErrBadParams].
func decodeParams(v reflect.Value, fields []paramField, params map[string]string) error {
	var faults []error
	for _, f := range fields {
		text, given := params[f.Name]
		if !given {
			if f.required {
				faults = append(faults, fmt.Errorf("%w: parameter %q is required", operator.ErrBadParams, f.Name))
				continue
			}
			if text = f.Default; text == "" {
				continue
			}
		}
		if err := setParam(v.Field(f.index), text); err != nil {
			faults = append(faults, fmt.Errorf("%w: parameter %q: %w", operator.ErrBadParams, f.Name, err))
		}
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	for name := range params {
		if !slices.Contains(names, name) {
			faults = append(faults, fmt.Errorf("%w: unknown parameter %q; known are: %s", operator.ErrBadParams, name, listNames(names)))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

func listNames(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// kebab writes a field's name as users write parameters: MaxRate is max-rate.
func kebab(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		if upper && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
