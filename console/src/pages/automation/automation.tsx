// The automation: executions, rules, packs, sensors and the datastore, one part at a time.

import { useLocale } from "../../locale.ts";
import { Segments } from "../../parts/field.tsx";
import { Page } from "../../parts/page.tsx";
import { addressOf, navigate } from "../../route.ts";
import { Datastore } from "./datastore.tsx";
import { Executions } from "./executions.tsx";
import { Packs } from "./packs.tsx";
import { Rules } from "./rules.tsx";
import { Sensors } from "./sensors.tsx";

const PARTS = ["executions", "rules", "packs", "sensors", "datastore"] as const;
type Part = (typeof PARTS)[number];

export function AutomationPage({ query }: { query: URLSearchParams }) {
  const { words } = useLocale();
  const w = words.automation;
  const part = PARTS.find((known) => known === query.get("part")) ?? "executions";
  return (
    <Page title={w.title}>
      <Segments<Part>
        label={w.parts}
        value={part}
        options={PARTS.map((value) => ({ value, label: w.partNames[value] }))}
        onChange={(chosen) => navigate(addressOf("automation", { part: chosen }))}
      />
      {part === "executions" && <Executions query={query} />}
      {part === "rules" && <Rules />}
      {part === "packs" && <Packs />}
      {part === "sensors" && <Sensors />}
      {part === "datastore" && <Datastore />}
    </Page>
  );
}
