// The words and formats of the reader's language, for every component.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { Format } from "./format.ts";
import type { Language } from "./settings.ts";
import { en, type Words } from "./words/en.ts";

export type Locale = { readonly language: Language; readonly words: Words; readonly format: Format };

export const englishLocale: Locale = { language: "en", words: en, format: new Format("en-GB") };

export async function loadLocale(language: Language): Promise<Locale> {
  if (language === "en") return englishLocale;
  const { ja } = await import("./words/ja.ts");
  return { language, words: ja, format: new Format("ja") };
}

export const LocaleContext = createContext<Locale>(englishLocale);

export function useLocale(): Locale {
  return useContext(LocaleContext);
}
