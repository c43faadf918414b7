// The reader's theme and language. Only these two are kept in the browser.

export type Theme = "system" | "light" | "dark";
export type Language = "en" | "ja";

const THEME_KEY = "imori-theme";
const LANGUAGE_KEY = "imori-language";

export function readTheme(): Theme {
  const kept = read(THEME_KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(theme: Theme): void {
  write(THEME_KEY, theme);
  const isDark = theme === "dark" || (theme === "system" && prefersDark().matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}

/** Follows the system's theme as long as the reader chose no other. */
export function followSystemTheme(): void {
  prefersDark().addEventListener("change", () => applyTheme(readTheme()));
}

function prefersDark(): MediaQueryList {
  return matchMedia("(prefers-color-scheme: dark)");
}

export function readLanguage(): Language {
  const kept = read(LANGUAGE_KEY);
  if (kept === "en" || kept === "ja") return kept;
  return navigator.language.startsWith("ja") ? "ja" : "en";
}

export function applyLanguage(language: Language): void {
  write(LANGUAGE_KEY, language);
  document.documentElement.lang = language;
}

// A browser may forbid storage; the choice then lasts as long as the page.
function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    return;
  }
}
