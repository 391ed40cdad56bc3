package assert

import (
	"fmt"
	"reflect"
)

// Failure is what a false assertion panics with.
type Failure struct {
	Message string
}

func (f *Failure) Error() string { return "assertion failed: " + f.Message }

// That panics with a [*Failure] unless cond holds. The message is formatted only
// then. The arguments are numbers, strings and booleans, of named types too; of
// anything else only the type is shown, so that no argument escapes to the heap.
func That(cond bool, msg string, args ...any) {
	if !cond {
		fail(msg, args)
	}
}

func fail(msg string, args []any) {
	if len(args) > 0 {
		plain := make([]any, len(args))
		for i, a := range args {
			plain[i] = plainCopy(a)
		}
		msg = fmt.Sprintf(msg, plain...)
	}
	panic(&Failure{Message: msg})
}

// plainCopy returns a copy that shares no memory with a. Formatting a itself would
// make the compiler put the arguments of every call of [That] on the heap.
func plainCopy(a any) any {
	v := reflect.ValueOf(a)
	switch v.Kind() {
	case reflect.Invalid:
		return "<nil>"
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return v.Uint()
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.String:
		return string(append([]byte(nil), v.String()...))
	default:
		return v.Type().String()
	}
}
