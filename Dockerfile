FROM python:3.11-slim

# Which torch: cpu, or a version of CUDA such as cu130 for a machine with a GPU. uv knows the index of each.
ARG TORCH=cpu

RUN useradd --create-home --uid 1000 condviz
WORKDIR /home/condviz/app

# Before the code, so that a change of the code does not install everything again.
COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check uv==0.13.9 \
    && uv pip install --no-cache --python "$(command -v python)" --torch-backend "$TORCH" --requirement requirements.txt

# What is made here lies apart from what is shipped, so that a volume never hides the models of a newer image.
RUN mkdir -p /home/condviz/.cache /home/condviz/data/runs /home/condviz/data/checkpoints \
    && chown -R 1000:1000 . /home/condviz/.cache /home/condviz/data
USER 1000
COPY --chown=1000:1000 . .
ENV CONDVIZ_CHECKPOINTS=/home/condviz/data/checkpoints \
    CONDVIZ_JOBS=/home/condviz/data/runs \
    GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860 \
    HF_HOME=/home/condviz/.cache/huggingface \
    NUMBA_CACHE_DIR=/home/condviz/.cache/numba \
    PYTHONUNBUFFERED=1

# Loads the encoder and scores once: a model that cannot be found stops the build, not the first visitor.
RUN python -m condviz score --model minilm "A man surfs." "A woman skis." --condition "the sport"

EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/healthz', timeout=9)"
CMD ["python", "app.py"]
