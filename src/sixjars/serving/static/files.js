// An image, a video or an array: dropped, chosen or pasted.
function fileControl({ name, kind: own, column }, changed) {
  let file;
  const kind = ["image", "video"].includes(own) ? own : "";
  const chosen = make("input", { type: "file", name, accept: kind ? `${kind}/*` : ".npy" });
  const shown = make("div");
  const zone = make("label", { class: "drop" }, `Drop the ${column} here, paste it, or choose a file`, chosen, shown);
  const take = (found) => {
    if (!found) return;
    file = found;
    if (shown.firstChild && shown.firstChild.src) URL.revokeObjectURL(shown.firstChild.src);
    const url = kind ? URL.createObjectURL(file) : "";
    const view = kind === "image" ? make("img", { src: url, alt: file.name })
      : kind ? make("video", { src: url, controls: "", muted: "", "aria-label": file.name }) : file.name;
    shown.replaceChildren(view);
    changed(true);
  };
  chosen.addEventListener("change", () => take(chosen.files[0]));
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  return {
    element: zone,
    value: () => file,
    put: (text) => take(fileOf(text)),
    needs: () => `There is no answer yet: give a file for the ${column}.`,
    paste: (found) => take(found),
  };
}

// The file that a data address holds.
function fileOf(address) {
  const [, type, content] = address.match(/^data:([^;]*);base64,(.*)$/s);
  return new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], "example", { type });
}
