// Puts the console into the page.

import { render } from "preact";
import { App } from "./app.tsx";
import { loadLocale } from "./locale.ts";
import { applyLanguage, applyTheme, followSystemTheme, readLanguage, readTheme } from "./settings.ts";
import "./theme.css";

async function start(): Promise<void> {
  const language = readLanguage();
  applyTheme(readTheme());
  followSystemTheme();
  applyLanguage(language);
  const locale = await loadLocale(language);
  const root = document.getElementById("app");
  if (root !== null) render(<App locale={locale} />, root);
}

void start();
