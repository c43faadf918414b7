// The switches of theme and language.

import { useState } from "preact/hooks";
import { useLocale } from "../locale.ts";
import { applyTheme, readTheme, type Language, type Theme } from "../settings.ts";
import { Choice } from "./field.tsx";

const LANGUAGES: readonly { readonly value: Language; readonly label: string }[] = [
  { value: "en", label: "English" },
  { value: "ja", label: "日本語" },
];

export function Preferences({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const { words, language } = useLocale();
  const [theme, setTheme] = useState(readTheme);
  const changeTheme = (next: Theme): void => {
    applyTheme(next);
    setTheme(next);
  };
  return (
    <div class="preferences">
      <Choice
        label={words.shell.theme}
        value={theme}
        onChange={changeTheme}
        options={[
          { value: "system", label: words.shell.themeSystem },
          { value: "light", label: words.shell.themeLight },
          { value: "dark", label: words.shell.themeDark },
        ]}
      />
      <Choice label={words.shell.language} value={language} onChange={onLanguage} options={LANGUAGES} />
    </div>
  );
}
