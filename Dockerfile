FROM python:3.11-slim

# Left empty, torch comes from the package index that pip uses. Give PyTorch's CPU index to save some gigabytes.
ARG PIP_EXTRA_INDEX_URL=""

RUN useradd --create-home --uid 1000 condviz
WORKDIR /home/condviz/app

# Before the code, so that a change of the code does not install everything again.
COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check --requirement requirements.txt

RUN mkdir /home/condviz/.cache && chown 1000:1000 . /home/condviz/.cache
USER 1000
COPY --chown=1000:1000 . .
ENV GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860 \
    HF_HOME=/home/condviz/.cache/huggingface \
    NUMBA_CACHE_DIR=/home/condviz/.cache/numba \
    PYTHONUNBUFFERED=1

# Loads the encoder and scores once: a model that cannot be found stops the build, not the first visitor.
RUN python -m condviz score --model minilm "A man surfs." "A woman skis." --condition "the sport"

EXPOSE 7860
CMD ["python", "app.py"]
