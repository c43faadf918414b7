"""Publishes a title over AMQP."""

import sys
import time
from pathlib import Path

from st2common.runners.base_action import Action


class Publish(Action):
    """Waits for the gate, and publishes once."""

    def run(self, title: str, way: str) -> str:
        """Publishes the title; the broker has it when this returns."""
        print("waits", flush=True)
        while not Path(self.config["gate"]).exists():
            time.sleep(0.02)
        sys.path.append(self.config["site"])
        import pika

        parameters = pika.ConnectionParameters("127.0.0.1", self.config["port"])
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            body = f"{title} by {way}"
            channel.basic_publish("amq.topic", "issues.opened", body.encode())
        return body
