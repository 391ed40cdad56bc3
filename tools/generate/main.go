// Command generate makes the Go code of the repository's proto/*.proto, without a
// system protoc: it parses them with protocompile and hands the descriptors to
// protoc-gen-go and, for files with services, to protoc-gen-go-grpc, both of the
// versions pinned in tools/go.mod. proto/README.md says how to add a file.
//
// Its argument is the root of the repository; names after it, as in "control.proto",
// restrict it to these files. It runs in the directory tools, since the plugins are
// that module's tools:
//
//	cd tools && go run ./generate ..
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// module is what go_package options begin with.
const module = "github.com/weirflow/weir"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: generate ROOT [NAME.proto ...]")
		os.Exit(2)
	}
	if err := run(context.Background(), filepath.Join(os.Args[1], "proto"), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run compiles the named .proto files of dir, or all, and writes their packages.
func run(ctx context.Context, dir string, names []string) error {
	if len(names) == 0 {
		var err error
		if names, err = sources(dir); err != nil {
			return err
		}
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := generate(ctx, dir, f); err != nil {
			return fmt.Errorf("%s: %w", f.Path(), err)
		}
	}
	return nil
}

// sources lists the .proto files of dir.
func sources(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no .proto file in %s", dir)
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	slices.Sort(names)
	return names, nil
}

// generate writes the package of one file, in the place of what was there.
func generate(ctx context.Context, dir string, f protoreflect.FileDescriptor) error {
	name := strings.TrimSuffix(f.Path(), ".proto") + "pb"
	want := module + "/proto/" + name
	if opts, ok := f.Options().(*descriptorpb.FileOptions); !ok || opts.GetGoPackage() != want {
		return fmt.Errorf("want option go_package = %q", want)
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{f.Path()},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      withImports(f, nil),
	}
	plugins := []string{"protoc-gen-go"}
	if f.Services().Len() > 0 {
		plugins = append(plugins, "protoc-gen-go-grpc")
	}
	out := filepath.Join(dir, name)
	if err := clear(out); err != nil {
		return err
	}
	for _, plugin := range plugins {
		if err := write(ctx, out, plugin, request); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return os.WriteFile(filepath.Join(out, "doc.go"), []byte(doc(name, f.Path())), 0o644)
}

// withImports returns the descriptors of f and all that it imports, imports first.
func withImports(f protoreflect.FileDescriptor, seen []*descriptorpb.FileDescriptorProto) []*descriptorpb.FileDescriptorProto {
	if slices.ContainsFunc(seen, func(s *descriptorpb.FileDescriptorProto) bool { return s.GetName() == f.Path() }) {
		return seen
	}
	for i := range f.Imports().Len() {
		seen = withImports(f.Imports().Get(i).FileDescriptor, seen)
	}
	return append(seen, protoutil.ProtoFromFileDescriptor(f))
}

// clear makes the directory and removes generated files from it.
func clear(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(out, "*.pb.go"))
	if err != nil {
		return err
	}
	for _, p := range old {
		if err := os.Remove(p); err != nil {
			return err
		}
	}
	return nil
}

// write runs one plugin and writes the files that it answers with.
func write(ctx context.Context, out, plugin string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, file := range response.File {
		path := filepath.Join(out, filepath.Base(file.GetName()))
		if err := os.WriteFile(path, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// doc is the package comment of a generated package.
func doc(name, source string) string {
	return fmt.Sprintf(`// Code generated from %[2]s by make generate. DO NOT EDIT.

// Package %[1]s holds the messages of proto/%[2]s, which describes them. It owns
// nothing else, has no goroutines and no locks, and is imported where native types
// are turned into messages and back, nowhere else; internal/tidy says where that is.
package %[1]s
`, name, source)
}
