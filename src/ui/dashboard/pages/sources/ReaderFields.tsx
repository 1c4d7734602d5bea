/** The settings of a registered reader, rendered generically from the service's description. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { type Reader, type ReaderField, readers, type ReaderTexts } from "../../api/Readers.ts"
import { Switch } from "../../components/Choices.tsx"
import { LongText, Select, TextField } from "../../components/Field.tsx"
import { texts, useLanguage, useText } from "../../text/Language.tsx"
import { numberOf } from "../../text/numberOf.ts"
import css from "./CuratedFields.module.css"
import { Refresh, type Refreshing } from "./RefreshField.tsx"

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

type Typed = Readonly<Record<string, string>>

/** Values of the settings, as typed. Secrets are separate, because drafts do not store them. */
export interface ReaderForm {
  readonly [field: string]: unknown
  readonly settings: Typed
  readonly secrets: Typed
  readonly readerRefresh: Refreshing
}

const noneTyped: Typed = {}
const never = (): Refreshing => "off"
export const emptyReader = { settings: noneTyped, secrets: noneTyped, readerRefresh: never() }

/** The text in the dashboard's language. */
export const useSaid = () => {
  const { language } = useLanguage()
  return ({ de, en }: ReaderTexts): string => (language === "de" ? (de ?? en) : en)
}

export const useReaders = (): ReadonlyArray<Reader> => useQuery(readers).data?.readers ?? []

const typedOf = (value: unknown): string => {
  if (Array.isArray(value)) return value.join("\n")
  return value === undefined || value === null ? "" : String(value)
}

/** The settings of a stored source. */
export const readerFormOf = (config: {
  readonly settings?: Readonly<Record<string, unknown>>
  readonly refresh?: Refreshing
}) => ({
  settings: Object.fromEntries(
    Object.entries(config.settings ?? {}).map(([name, value]) => [name, typedOf(value)])
  ),
  secrets: noneTyped,
  readerRefresh: config.refresh ?? "off"
})

const valueOf = ({ kind }: ReaderField, typed: string): unknown => {
  if (kind === "number") return numberOf(typed)
  if (kind === "switch") return typed === "true"
  if (kind !== "list") return typed
  return typed
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
}

/** The source's config from the form. */
export const readerConfigOf = (reader: Reader, { readerRefresh, secrets, settings }: ReaderForm) => ({
  reader: reader.name,
  settings: Object.fromEntries(
    reader.fields.flatMap((field) => {
      const typed = (field.kind === "secret" ? secrets : settings)[field.name]?.trim() ?? ""
      return typed === "" ? [] : [[field.name, valueOf(field, typed)] as const]
    })
  ),
  refresh: readerRefresh
})

/** Paths of validation issues that have a field. A switch shows none. */
export const readerPlaces = (reader: Reader | undefined): ReadonlyArray<string> =>
  (reader?.fields ?? []).flatMap(({ kind, name }) => (kind === "switch" ? [] : `config.settings.${name}`))

interface Props {
  readonly reader: Reader
  readonly form: ReaderForm
  readonly onChange: (form: Partial<ReaderForm>) => void
  readonly errorOf: (place: string) => string | undefined
  /** What stands below the settings, and below the schedule. */
  readonly below?: (field: "settings" | "readerRefresh") => ReactNode
  /** True if the source already has its secrets. */
  readonly isStored?: boolean
}

interface FieldProps extends Omit<Props, "below" | "reader"> {
  readonly field: ReaderField
}

const Field = ({ errorOf, field, form, isStored = false, onChange }: FieldProps) => {
  const t = useText(words)
  const said = useSaid()
  const { kind, name, required } = field
  const label = said(field.label)
  const hint = field.hint === undefined ? {} : { help: said(field.hint) }
  const value = form.settings[name] ?? ""
  const change = (typed: string) => onChange({ settings: { ...form.settings, [name]: typed } })
  const error = errorOf(`config.settings.${name}`)
  if (kind === "switch") {
    return <Switch label={label} isSelected={value === "true"} onChange={(on) => change(on ? "true" : "")} />
  }
  if (kind === "choice") {
    const choices = (field.choices ?? []).map((choice) => [choice, choice] as const)
    // Nothing seems to be chosen that is not sent.
    const options = required && value !== "" ? choices : [["", t.unset] as const, ...choices]
    return <Select label={label} {...hint} options={options} value={value} onChange={change} error={error} />
  }
  if (kind === "list") {
    return <LongText label={label} {...hint} rows={2} mono value={value} onChange={change} error={error} />
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

export const ReaderFields = ({ below = () => null, reader, ...props }: Props) => {
  const said = useSaid()
  const { form, onChange } = props
  return (
    <>
      <p className={css["help"]}>{said(reader.description)}</p>
      {reader.fields.map((field) => (
        <Field key={field.name} field={field} {...props} />
      ))}
      {below("settings")}
      <Refresh value={form.readerRefresh} onChange={(readerRefresh) => onChange({ readerRefresh })} />
      {below("readerRefresh")}
    </>
  )
}
