"""What a collector passes on, read with OpenTelemetry's own definitions: one JSON line for each span and each metric.

Usage: receiver.py   (prints its port first)
"""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

writing = Lock()


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value") or "string_value")


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def say(**line):
    with writing:
        print(json.dumps(line), flush=True)


def spans(request):
    for resource in request.resource_spans:
        service = attributes(resource.resource.attributes).get("service.name")
        for scope in resource.scope_spans:
            for span in scope.spans:
                say(
                    kind="span",
                    service=service,
                    scope=scope.scope.name,
                    name=span.name,
                    side={1: "internal", 2: "server", 3: "client"}.get(span.kind),
                    trace=span.trace_id.hex(),
                    span=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    links=[{"trace": link.trace_id.hex(), "span": link.span_id.hex()} for link in span.links],
                    attributes=attributes(span.attributes),
                    status={0: "unset", 1: "ok", 2: "error"}[span.status.code],
                    message=span.status.message,
                    nanoseconds=span.end_time_unix_nano - span.start_time_unix_nano,
                )


def metrics(request):
    for resource in request.resource_metrics:
        service = attributes(resource.resource.attributes).get("service.name")
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = metric.WhichOneof("data")
                for point in getattr(metric, data).data_points:
                    count = point.count if data == "histogram" else getattr(point, point.WhichOneof("value"))
                    say(
                        kind="metric",
                        service=service,
                        name=metric.name,
                        unit=metric.unit,
                        data=data,
                        value=count,
                        attributes=attributes(point.attributes),
                        buckets=list(point.bucket_counts) if data == "histogram" else None,
                        bounds=list(point.explicit_bounds) if data == "histogram" else None,
                    )


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/v1/traces":
            spans(ExportTraceServiceRequest.FromString(body))
        elif self.path == "/v1/metrics":
            metrics(ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
sys.stdin.close()
server.serve_forever()
