/** The settings of a registered reader. The fields follow from the description that the service gives of it. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { type Reader, type ReaderField, readers, type ReaderTexts } from "../../api/Readers.ts"
import { Switch } from "../../components/Checkboxes.tsx"
import { Select, TextArea, TextField } from "../../components/Field.tsx"
import { linesOf } from "../../forms/lines.ts"
import { texts, useLanguage, useText } from "../../text/Language.tsx"
import { parseNumber } from "../../text/parseNumber.ts"
import css from "./CuratedFields.module.css"
import { RefreshField, type RefreshInterval } from "./RefreshField.tsx"

const words = texts(
  {
    unset: "Not set",
    kept: "Left empty, it stays as it is, unless the address changes."
  },
  {
    unset: "Nicht gesetzt",
    kept: "Leer bleibt er, wie er ist, sofern sich die Adresse nicht ändert."
  }
)

type FieldValues = Readonly<Record<string, string>>

/** Values of the settings, as typed. Secrets are separate, because drafts do not store them. */
export interface ReaderForm {
  readonly [field: string]: unknown
  readonly settings: FieldValues
  readonly secrets: FieldValues
  readonly readerRefresh: RefreshInterval
}

const noValues: FieldValues = {}
const noRefresh = (): RefreshInterval => "off"
export const emptyReader = { settings: noValues, secrets: noValues, readerRefresh: noRefresh() }

/** Chooses a reader's text in the language of the dashboard. */
export const useReaderText = () => {
  const { language } = useLanguage()
  return ({ de, en }: ReaderTexts): string => (language === "de" ? (de ?? en) : en)
}

export const useReaders = (): ReadonlyArray<Reader> => useQuery(readers).data?.readers ?? []

const fieldText = (value: unknown): string => {
  if (Array.isArray(value)) return value.join("\n")
  return value === undefined || value === null ? "" : String(value)
}

/** The values of the fields for a stored source. */
export const readerFormOf = (config: {
  readonly settings?: Readonly<Record<string, unknown>>
  readonly refresh?: RefreshInterval
}) => ({
  settings: Object.fromEntries(
    Object.entries(config.settings ?? {}).map(([name, value]) => [name, fieldText(value)])
  ),
  secrets: noValues,
  readerRefresh: config.refresh ?? "off"
})

const parseValue = ({ kind }: ReaderField, typed: string): unknown => {
  if (kind === "number") return parseNumber(typed)
  if (kind === "switch") return typed === "true"
  return kind === "list" ? linesOf(typed) : typed
}

/** The source's config from the form. */
export const readerConfigOf = (reader: Reader, { readerRefresh, secrets, settings }: ReaderForm) => ({
  reader: reader.name,
  settings: Object.fromEntries(
    reader.fields.flatMap((field) => {
      const typed = (field.kind === "secret" ? secrets : settings)[field.name]?.trim() ?? ""
      return typed === "" ? [] : [[field.name, parseValue(field, typed)] as const]
    })
  ),
  refresh: readerRefresh
})

/** Paths of the validation issues that the fields show. A switch shows none. */
export const readerPaths = (reader: Reader | undefined): ReadonlyArray<string> =>
  (reader?.fields ?? []).flatMap(({ kind, name }) => (kind === "switch" ? [] : `config.settings.${name}`))

interface Props {
  readonly reader: Reader
  readonly form: ReaderForm
  readonly onChange: (form: Partial<ReaderForm>) => void
  readonly errorOf: (path: string) => string | undefined
  /** Shows the stored value of a field that another session has changed. */
  readonly conflictOf?: (field: "settings" | "readerRefresh") => ReactNode
  /** True if the source already has its secrets. */
  readonly isStored?: boolean
}

interface FieldProps extends Omit<Props, "conflictOf" | "reader"> {
  readonly field: ReaderField
}

const Field = ({ errorOf, field, form, isStored = false, onChange }: FieldProps) => {
  const t = useText(words)
  const readerText = useReaderText()
  const { kind, name, required } = field
  const label = readerText(field.label)
  const hint = field.hint === undefined ? {} : { help: readerText(field.hint) }
  const value = form.settings[name] ?? ""
  const change = (typed: string) => onChange({ settings: { ...form.settings, [name]: typed } })
  const error = errorOf(`config.settings.${name}`)
  if (kind === "switch") {
    return <Switch label={label} isSelected={value === "true"} onChange={(on) => change(on ? "true" : "")} />
  }
  if (kind === "choice") {
    const choices = (field.choices ?? []).map((choice) => [choice, choice] as const)
    // Without a value, an empty option is shown, so that no choice seems to be selected.
    const options = required && value !== "" ? choices : [["", t.unset] as const, ...choices]
    return <Select label={label} {...hint} options={options} value={value} onChange={change} error={error} />
  }
  if (kind === "list") {
    return <TextArea label={label} {...hint} rows={2} mono value={value} onChange={change} error={error} />
  }
  if (kind === "secret") {
    return (
      <TextField
        label={label}
        {...(isStored ? { help: t.kept } : hint)}
        type="password"
        autoComplete="new-password"
        required={required && !isStored}
        value={form.secrets[name] ?? ""}
        onChange={(typed) => onChange({ secrets: { ...form.secrets, [name]: typed } })}
        error={error}
      />
    )
  }
  return (
    <TextField
      label={label}
      {...hint}
      spellCheck="false"
      {...(kind === "number" ? { inputMode: "decimal" as const } : {})}
      required={required}
      value={value}
      onChange={change}
      error={error}
    />
  )
}

export const ReaderFields = ({ conflictOf = () => null, reader, ...props }: Props) => {
  const readerText = useReaderText()
  const { form, onChange } = props
  return (
    <>
      <p className={css["help"]}>{readerText(reader.description)}</p>
      {reader.fields.map((field) => (
        <Field key={field.name} field={field} {...props} />
      ))}
      {conflictOf("settings")}
      <RefreshField value={form.readerRefresh} onChange={(readerRefresh) => onChange({ readerRefresh })} />
      {conflictOf("readerRefresh")}
    </>
  )
}
