"""The page: a Gradio app over the inference core. Nothing outside this package imports gradio."""
