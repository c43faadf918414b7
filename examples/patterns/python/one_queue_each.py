"""Each receiver has a queue, and the sender chooses by the queue who gets a message."""

import sys

from proton import Message, Timeout
from proton.utils import BlockingConnection

connection = BlockingConnection(sys.argv[1], user="guest", password="guest")
for order in ("tokyo:1", "osaka:2", "tokyo:3", "nagoya:4", "osaka:5", "tokyo:6"):
    office, number = order.split(":")
    sender = connection.create_sender(f"orders.{office}")
    sender.send(Message(body=f"order {number}", durable=True))
    sender.close()
for office in ("tokyo", "osaka", "nagoya"):
    receiver = connection.create_receiver(f"orders.{office}")
    while True:
        try:
            message = receiver.receive(timeout=1)
        except Timeout:
            break
        receiver.accept()
        print(f"{office} has {message.body}")
connection.close()
