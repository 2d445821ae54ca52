package main

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

const code = `package a // of a sort

import "sync"

func f(mu *sync.RWMutex, c, d chan int) {
	mu.Lock()
	mu.Unlock()
	defer mu.Unlock()
	if true {
		mu.RLock(); mu.RUnlock()
	}
	go func() { c <- 1 }()
	go f(nil, nil, nil)
	select {
	case <-c:
		mu.Lock()
	case d <- 1:
	default:
		println(mu.TryLock())
	}
	switch {
	case true:
		mu.Unlock()
	}
}
`

const changed = `package a; IMPORT // of a sort

import "sync"

func f(mu *sync.RWMutex, c, d chan int) {
	HERE; mu.Lock()
	mu.Unlock(); HERE
	defer mu.Unlock()
	if true {
		HERE; mu.RLock(); mu.RUnlock(); HERE
	}
	go func() { HERE;  c <- 1 }()
	go f(nil, nil, nil)
	select {
	case <-c:
		HERE; HERE; mu.Lock()
	case d <- 1:
	default:
		HERE; println(mu.TryLock())
	}
	switch {
	case true:
		mu.Unlock(); HERE
	}
}
`

func TestPlaces(t *testing.T) {
	got, places, err := withPlaces("a.go", code)
	want := strings.NewReplacer("; IMPORT", imported, "HERE", here).Replace(changed)
	if err != nil || got != want || places != 9 {
		t.Errorf("%d places (%v) in\n%s\nwant 9 in\n%s", places, err, got, want)
	}
	if got, places, err := withPlaces("a.go", "package a\n"); got != "package a\n" || places != 0 || err != nil {
		t.Errorf("a file without a place became %q, with %d (%v)", got, places, err)
	}
	if _, _, err := withPlaces("a.go", "package"); err == nil {
		t.Error("a file that is no code was taken")
	}
}

func TestTheCodeStaysCode(t *testing.T) {
	files, err := sources()
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	places := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		with, n, err := withPlaces(file, string(text))
		if err == nil {
			_, err = parser.ParseFile(token.NewFileSet(), file, with, 0)
		}
		if err != nil {
			t.Error(err)
		}
		if strings.Count(with, "\n") != strings.Count(string(text), "\n") {
			t.Errorf("%s: lines have moved", file)
		}
		places += n
	}
	if places < 500 {
		t.Errorf("%d places in all the code", places)
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct {
		every, most, words int
		want               string
	}{{4, 200, 1, ""}, {1, 1, 1, ""}, {0, 200, 1, "-every"}, {4, 0, 1, "-most"}, {4, 200, 0, "./sdk"}} {
		wrong := wrongUse(c.every, c.most, c.words)
		if !strings.Contains(wrong, c.want) || (wrong == "") != (c.want == "") {
			t.Errorf("wrongUse(%d, %d, %d) = %q, want something with %q", c.every, c.most, c.words, wrong, c.want)
		}
	}
}
