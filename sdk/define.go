package kagzi

import "context"

// Workflow is a workflow type together with the Go types of its input and output. Define makes one;
// workers, clients and parents share it, so that code that starts the type with another input or
// reads another output does not compile.
//
//	var Order = kagzi.Define[OrderInput, Receipt]("order")
//
//	Order.Handle(w, func(ctx kagzi.Context, in OrderInput) (Receipt, error) { … }) // in the worker
//	run, err := Order.Start(ctx, c, OrderInput{Total: 5}, kagzi.StartOptions{})    // in the client
//	receipt, err := run.Result(ctx)
//
// Its methods do what the functions of the same names do. What they start is an ordinary run: code
// that uses the functions, and SDKs of other languages, can start and serve the same type.
type Workflow[In, Out any] struct{ name string }

// Define returns the workflow type with a name. It panics if the name is invalid: 1 to 255 characters
// of A-Z a-z 0-9 . _ : / - are allowed.
func Define[In, Out any](workflowType string) Workflow[In, Out] {
	if err := checkName("workflow type", workflowType); err != nil {
		panic("kagzi: Define: " + err.Error())
	}
	return Workflow[In, Out]{workflowType}
}

// Type returns the name of the workflow type.
func (t Workflow[In, Out]) Type() string { return t.name }

// Handle registers fn as the type's workflow function, as the function Handle does.
func (t Workflow[In, Out]) Handle(w *Worker, fn func(ctx Context, in In) (Out, error)) {
	Handle(w, t.name, fn)
}

// Start starts a run of the type, as the function Start does.
func (t Workflow[In, Out]) Start(ctx context.Context, c *Client, in In, opts StartOptions) (*TypedRun[Out], error) {
	run, err := Start(ctx, c, t.name, in, opts)
	if err != nil {
		return nil, err
	}
	return &TypedRun[Out]{run}, nil
}

// StartMany starts a run of the type for each input, as the function StartMany does.
func (t Workflow[In, Out]) StartMany(ctx context.Context, c *Client, ins []In, opts StartOptions,
	each ...func(i int, o *StartOptions)) ([]*TypedRun[Out], error) {
	runs, err := StartMany(ctx, c, t.name, ins, opts, each...)
	if runs == nil {
		return nil, err
	}
	typed := make([]*TypedRun[Out], len(runs))
	for i, run := range runs {
		if run != nil {
			typed[i] = &TypedRun[Out]{run}
		}
	}
	return typed, err
}

// Run returns a handle to a run of the type by its id. It does not call the server, so it does not
// check that the run has this type.
func (t Workflow[In, Out]) Run(c *Client, runID string) *TypedRun[Out] {
	return &TypedRun[Out]{c.Run(runID)}
}

// Child starts a run of the type as a child, as the function StartChild does.
func (t Workflow[In, Out]) Child(ctx Context, name string, in In, opts ChildOptions) (*Child[Out], error) {
	return StartChild[Out](ctx, name, t.name, in, opts)
}

// RunChild starts a child and waits for its result, as the function RunChild does.
func (t Workflow[In, Out]) RunChild(ctx Context, name string, in In, opts ChildOptions) (Out, error) {
	return RunChild[Out](ctx, name, t.name, in, opts)
}

// TypedRun is a Run whose output has the type Out.
type TypedRun[Out any] struct{ *Run }

// Result waits for the run to end and returns its output, as the function Result does.
func (r *TypedRun[Out]) Result(ctx context.Context) (Out, error) { return Result[Out](ctx, r.Run) }
