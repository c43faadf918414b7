const list = document.getElementById("prices");
const source = new EventSource("/prices");
source.onmessage = (event) => {
  list.textContent = `${event.data}\n${list.textContent}`;
};
