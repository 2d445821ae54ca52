// Command gen compiles the .proto files in this module and writes the Go code next to them. It
// needs no protoc: the compiler is a library, and the two plugins are tools of this module.
//
// Run it from the module's root with `go generate ./proto`.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	log.SetFlags(0)
	if err := generate(context.Background(), "."); err != nil {
		log.Fatalln("gen:", err)
	}
}

func generate(ctx context.Context, root string) error {
	files, err := protoFiles(root)
	if err != nil {
		return err
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.CompositeResolver{
			&protocompile.SourceResolver{ImportPaths: []string{root}}, protocompile.ResolverFunc(linked)}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return err
	}
	if err := writeRoutes(root, compiled); err != nil {
		return err
	}
	if err := writeOpenAPI(root, compiled); err != nil {
		return err
	}
	var descriptors []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{annotationsFile: true}
	for _, file := range compiled {
		descriptors = appendWithImports(descriptors, seen, file)
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := runPlugin(root, plugin, files, descriptors); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

func protoFiles(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".proto" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(files)
	return files, err
}

// appendWithImports appends file after all files that it imports, as plugins require.
func appendWithImports(all []*descriptorpb.FileDescriptorProto, seen map[string]bool,
	file protoreflect.FileDescriptor) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return all
	}
	seen[file.Path()] = true
	imports := file.Imports()
	for i := range imports.Len() {
		all = appendWithImports(all, seen, imports.Get(i).FileDescriptor)
	}
	return append(all, withoutRoutes(protoutil.ProtoFromFileDescriptor(file)))
}

// parameters maps the files to the Go package; the contract itself names no language.
func parameters(files []string) string {
	p := "paths=source_relative"
	for _, f := range files {
		p += ",M" + f + "=github.com/kagzi/kagzi/proto/kagzi/v1;kagziv1"
	}
	return p
}

func runPlugin(root, plugin string, files []string, descriptors []*descriptorpb.FileDescriptorProto) error {
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String(parameters(files)),
		ProtoFile:      descriptors,
		// fixed, because plugins write it into their output, which must be reproducible
		CompilerVersion: &pluginpb.Version{Major: proto.Int32(5), Minor: proto.Int32(29), Patch: proto.Int32(0)},
	})
	if err != nil {
		return err
	}
	command := exec.Command("go", "tool", plugin)
	command.Stdin, command.Stderr = bytes.NewReader(request), os.Stderr
	out, err := command.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", *response.Error)
	}
	for _, f := range response.File {
		if err := os.WriteFile(filepath.Join(root, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
