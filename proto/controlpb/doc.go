// Code generated from control.proto by make generate. DO NOT EDIT.

// Package controlpb holds the messages of proto/control.proto, which describes them. It owns
// nothing else, has no goroutines and no locks, and is imported where native types
// are turned into messages and back, nowhere else; internal/tidy says where that is.
package controlpb
