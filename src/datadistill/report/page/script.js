"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  let touched = false;

  // Enlarged images: a click, Enter or Space opens; arrow keys go on; Escape closes.
  const dialog = document.getElementById("enlarged");
  const part = (selector) => dialog.querySelector(selector);
  const cells = all(".cell");
  let shown = 0;
  const show = (place) => {
    shown = (place + cells.length) % cells.length;
    const cell = cells[shown], image = cell.querySelector("img");
    part("img").src = image.src;
    part("img").alt = image.alt;
    part("h2").textContent = cell.title;
    part(".detail").textContent = cell.dataset.detail;
    part(".rates").textContent = "learning rate in each epoch: " + cell.dataset.rates;
    const weights = JSON.parse(cell.dataset.soft);
    part(".soft").replaceChildren(...weights.map(([name, weight]) => {
      const item = document.createElement("li"), bar = document.createElement("meter");
      bar.max = Math.max(...weights.map(([, other]) => Math.abs(other)), 1e-9);
      bar.value = Math.abs(weight);
      item.append(bar, ` ${weight.toFixed(3)} ${name}`);
      return item;
    }));
    if (!dialog.open) dialog.showModal();
  };
  cells.forEach((cell, place) => cell.addEventListener("click", () => show(place)));
  part(".previous").addEventListener("click", () => show(shown - 1));
  part(".next").addEventListener("click", () => show(shown + 1));
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") show(shown - 1);
    if (event.key === "ArrowRight") show(shown + 1);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => cells[shown] && cells[shown].focus());

  // The slider: how the images came to be; on paper, a few of its pictures beside each other.
  const PRINTED = 4;
  const strip = (film) => {
    const { uris, moments } = JSON.parse(film.querySelector(".frames").textContent);
    const count = Math.min(PRINTED, uris.length), row = document.createElement("div");
    row.className = "moments";
    row.style.setProperty("--shown", count);
    row.append(...Array.from({ length: count }, (_, place) => {
      const chosen = Math.round(place * (uris.length - 1) / (count - 1));
      const one = document.createElement("div"), image = document.createElement("img");
      image.src = uris[chosen];
      image.alt = "All distilled images, " + moments[chosen];
      one.append(image, moments[chosen]);
      return one;
    }));
    film.prepend(row);
    film.classList.add("strip");
    return row;
  };
  all(".film").forEach((film) => {
    const { uris, moments } = JSON.parse(film.querySelector(".frames").textContent);
    const slider = film.querySelector("input"), play = film.querySelector(".play");
    const image = film.querySelector(".frame"), moment = film.querySelector(".moment");
    let timer = 0;
    const set = () => {
      image.src = uris[slider.value];
      image.alt = "All distilled images, " + moments[slider.value];
      moment.textContent = moments[slider.value];
      slider.setAttribute("aria-valuetext", moments[slider.value]);
    };
    const stop = () => {
      clearInterval(timer);
      timer = 0;
      play.textContent = "▶";
      play.setAttribute("aria-label", "Play");
    };
    slider.addEventListener("input", () => { touched = true; stop(); set(); });
    play.addEventListener("click", () => {
      touched = true;
      if (timer) return stop();
      if (slider.value === slider.max) slider.value = 0;
      play.textContent = "❚❚";
      play.setAttribute("aria-label", "Pause");
      set();
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        set();
        if (slider.value === slider.max) stop();
      }, 180);
    });
    slider.setAttribute("aria-valuetext", moments[slider.value]);
  });

  // Code that can be copied.
  all(".copy").forEach((button) => button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }));

  // A link to a run opens it.
  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();

  // Paper has no slider and unfolds nothing: it shows some pictures of the run, and all sections.
  let folded = [], strips = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    folded.forEach((one) => { one.open = true; });
    strips = all(".film").map((film) => strip(film));
  });
  addEventListener("afterprint", () => {
    folded.forEach((one) => { one.open = false; });
    strips.forEach((one) => { one.parentElement.classList.remove("strip"); one.remove(); });
  });

  // The page of a run at work is written again; it is loaded again unless somebody uses it.
  if ("live" in document.documentElement.dataset) {
    setInterval(() => { if (!touched && !dialog.open) location.reload(); }, 5000);
  }
})();
