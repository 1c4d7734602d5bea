/** The personal data that is hidden from an agent's model, tools and traces. */
import type { Agent } from "../../api/Agents.ts"
import { Switch } from "../../components/Checkboxes.tsx"
import { TextArea, TextField } from "../../components/Field.tsx"
import { Section } from "../../components/Page.tsx"
import { ConflictingValue } from "../../forms/DraftNotes.tsx"
import { linesOf } from "../../forms/lines.ts"
import type { Draft } from "../../forms/useDraft.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    title: "Personal data",
    help: "Replaced by placeholders before a message reaches the model, a tool or a trace. Readers see the values in the reply.",
    isMasked: "Mask personal data",
    email: "E-mail addresses",
    phone: "Phone numbers",
    card: "Payment-card numbers",
    patterns: "Patterns of your own",
    patternsHelp:
      "One a line, as name: pattern, such as customer-number: KD-\\d{6,8}. Characters, sets such as [A-Z], \\d, \\w, \\s, counts such as {6} or {6,8}, and ?.",
    sources: "Mask the sources too",
    tools: "Tools that get the values",
    toolsHelp: "Names with commas between them. Empty: every tool gets placeholders.",
    yes: "on",
    no: "off"
  },
  {
    title: "Personenbezogene Daten",
    help: "Durch Platzhalter ersetzt, bevor eine Nachricht zum Modell, zu einem Werkzeug oder in ein Protokoll gelangt. In der Antwort stehen die Werte.",
    isMasked: "Personenbezogene Daten maskieren",
    email: "E-Mail-Adressen",
    phone: "Telefonnummern",
    card: "Nummern von Zahlungskarten",
    patterns: "Eigene Muster",
    patternsHelp:
      "Eines je Zeile, als Name: Muster, etwa customer-number: KD-\\d{6,8}. Zeichen, Mengen wie [A-Z], \\d, \\w, \\s, Anzahlen wie {6} oder {6,8} und ?.",
    sources: "Auch die Quellen maskieren",
    tools: "Werkzeuge, die die Werte bekommen",
    toolsHelp: "Namen mit Kommas dazwischen. Leer: jedes Werkzeug bekommt Platzhalter.",
    yes: "an",
    no: "aus"
  }
)

const kinds = ["email", "phone", "card"] as const

/** The values of the fields, as typed. */
export const maskingFieldsOf = ({ masking }: Agent) => ({
  isMasked: masking !== null,
  email: masking?.kinds.includes("email") ?? true,
  phone: masking?.kinds.includes("phone") ?? true,
  card: masking?.kinds.includes("card") ?? true,
  patterns: (masking?.patterns ?? []).map(({ name, pattern }) => `${name}: ${pattern}`).join("\n"),
  maskedSources: masking?.sources ?? false,
  trustedTools: (masking?.tools ?? []).join(", ")
})
type MaskingFieldValues = ReturnType<typeof maskingFieldsOf>

const patternOf = (line: string) => {
  const [name = "", ...rest] = line.split(":")
  return { name: name.trim(), pattern: rest.join(":").trim() }
}

/** The settings as they are sent. */
export const maskingOf = (value: MaskingFieldValues) =>
  value.isMasked
    ? {
        kinds: kinds.filter((kind) => value[kind]),
        patterns: linesOf(value.patterns).map(patternOf),
        sources: value.maskedSources,
        tools: value.trustedTools.split(/[,\s]+/u).filter((name) => name !== "")
      }
    : null

interface MaskingProps<A extends MaskingFieldValues & Readonly<Record<string, unknown>>> {
  readonly draft: Draft<A>
  readonly change: (changes: Partial<MaskingFieldValues>) => void
  readonly mayChange: boolean
  readonly errorOf: (field: "masking.patterns" | "masking.tools") => string | undefined
}

export const MaskingFields = <A extends MaskingFieldValues & Readonly<Record<string, unknown>>>({
  change,
  draft,
  errorOf,
  mayChange
}: MaskingProps<A>) => {
  const t = useText(words)
  const { value } = draft
  const switchField = (name: "isMasked" | "email" | "phone" | "card" | "maskedSources", label: string) => (
    <>
      <Switch
        label={label}
        disabled={!mayChange}
        isSelected={value[name]}
        onChange={(on) => change({ [name]: on })}
      />
      <ConflictingValue draft={draft} name={name} format={(on) => (on === true ? t.yes : t.no)} />
    </>
  )
  return (
    <Section title={t.title} lead={t.help} guide="privacy#masking" beside>
      {switchField("isMasked", t.isMasked)}
      {value.isMasked ? (
        <>
          {switchField("email", t.email)}
          {switchField("phone", t.phone)}
          {switchField("card", t.card)}
          <TextArea
            label={t.patterns}
            help={t.patternsHelp}
            guide="privacy#patterns"
            rows={3}
            mono
            readOnly={!mayChange}
            value={value.patterns}
            onChange={(patterns) => change({ patterns })}
            error={errorOf("masking.patterns")}
          />
          <ConflictingValue draft={draft} name="patterns" />
          {switchField("maskedSources", t.sources)}
          <TextField
            label={t.tools}
            help={t.toolsHelp}
            readOnly={!mayChange}
            value={value.trustedTools}
            onChange={(trustedTools) => change({ trustedTools })}
            error={errorOf("masking.tools")}
          />
          <ConflictingValue draft={draft} name="trustedTools" />
        </>
      ) : null}
    </Section>
  )
}
