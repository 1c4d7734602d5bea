/** Form fields with label, help and error: a text field, a text area, a file and a select. */
import {
  type ComponentProps,
  type FormEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState
} from "react"
import { ChevronDown } from "lucide-react"
import { GuideLink } from "../text/GuideLink.tsx"
import { texts, useText } from "../text/Language.tsx"
import css from "./Field.module.css"

const words = texts(
  { choose: "Choose file", noFile: "No file chosen" },
  { choose: "Datei wählen", noFile: "Keine Datei gewählt" }
)

interface Labelled {
  readonly label: string
  readonly help?: string | undefined
  /** Page and heading of the documentation about the field. */
  readonly guide?: string | undefined
  /** The error of the service. It replaces the browser's message. */
  readonly error?: string | undefined
  /** The label is only for screen readers. */
  readonly compact?: boolean
}

interface LabelledControlProps extends Labelled {
  readonly id: string
  /** The browser's validation message. */
  readonly nativeMessage?: string
  readonly children: ReactNode
}

/** A control with its label, help and error. */
const LabelledControl = ({
  id,
  label,
  help,
  guide,
  error,
  nativeMessage = "",
  compact = false,
  children
}: LabelledControlProps) => {
  const message = error ?? nativeMessage
  return (
    <div className={css["field"]}>
      <label htmlFor={id} className={compact ? "visually-hidden" : css["label"]}>
        {label}
      </label>
      {children}
      {message === "" ? null : (
        <span id={`${id}-error`} className={css["error"]}>
          {message}
        </span>
      )}
      {help === undefined ? null : (
        <span id={`${id}-help`} className={css["help"]}>
          {help} {guide === undefined ? null : <GuideLink guide={guide} about={label} />}
        </span>
      )}
    </div>
  )
}

/** Attributes that connect a control with its help and error. */
const controlAttributes = (id: string, { error, help }: Labelled, nativeMessage: string) => {
  const isInvalid = error !== undefined || nativeMessage !== ""
  const parts = [...(isInvalid ? [`${id}-error`] : []), ...(help === undefined ? [] : [`${id}-help`])]
  return {
    id,
    ...(isInvalid ? { "aria-invalid": true } : {}),
    ...(parts.length === 0 ? {} : { "aria-describedby": parts.join(" ") })
  }
}

type Input = HTMLInputElement | HTMLTextAreaElement

/** Shows the browser's validation message below the field, and focuses the first invalid field. */
const useNativeValidation = (autoFocus: boolean) => {
  const [nativeMessage, setNativeMessage] = useState("")
  const field = useRef<Input>(null)
  useEffect(() => {
    if (autoFocus) field.current?.focus()
  }, [autoFocus])
  return {
    nativeMessage,
    field,
    /** Updates the message after a change. */
    updateMessage: (input: Input) => {
      if (nativeMessage !== "") setNativeMessage(input.validationMessage)
    },
    onInvalid: (event: FormEvent<Input>) => {
      event.preventDefault()
      const { currentTarget } = event
      setNativeMessage(currentTarget.validationMessage)
      const isFirst = currentTarget.form?.querySelector(":is(input, textarea):invalid") === currentTarget
      if (isFirst) currentTarget.focus()
    }
  }
}

interface TextProps extends Labelled {
  readonly value: string
  readonly onChange: (value: string) => void
}

interface TextFieldProps
  extends TextProps, Omit<ComponentProps<"input">, "className" | "id" | "onChange" | "ref" | "value"> {
  /** The unit, shown after the input. */
  readonly unit?: string
}

export const TextField = ({
  label,
  help,
  guide,
  error,
  compact = false,
  autoFocus = false,
  unit,
  onChange,
  ...props
}: TextFieldProps) => {
  const id = useId()
  const texts = { label, help, guide, error, compact }
  const { field, onInvalid, nativeMessage, updateMessage } = useNativeValidation(autoFocus)
  return (
    <LabelledControl {...texts} id={id} nativeMessage={nativeMessage}>
      <span className={unit === undefined ? css["line"] : css["measured"]}>
        <input
          {...props}
          {...controlAttributes(id, texts, nativeMessage)}
          ref={(input) => {
            field.current = input
          }}
          className={css["input"]}
          onInvalid={onInvalid}
          onChange={({ currentTarget }) => {
            updateMessage(currentTarget)
            onChange(currentTarget.value)
          }}
        />
        {unit === undefined ? null : <span aria-hidden>{unit}</span>}
      </span>
    </LabelledControl>
  )
}

interface TextAreaProps
  extends TextProps, Omit<ComponentProps<"textarea">, "className" | "id" | "onChange" | "ref" | "value"> {
  readonly mono?: boolean
}

export const TextArea = ({
  label,
  help,
  guide,
  error,
  compact = false,
  autoFocus = false,
  rows = 4,
  mono = false,
  onChange,
  ...props
}: TextAreaProps) => {
  const id = useId()
  const texts = { label, help, guide, error, compact }
  const { field, onInvalid, nativeMessage, updateMessage } = useNativeValidation(autoFocus)
  return (
    <LabelledControl {...texts} id={id} nativeMessage={nativeMessage}>
      <textarea
        {...props}
        {...controlAttributes(id, texts, nativeMessage)}
        ref={(input) => {
          field.current = input
        }}
        className={`${css["input"]} ${css["long"]} ${mono ? css["mono"] : ""}`}
        rows={rows}
        onInvalid={onInvalid}
        onChange={({ currentTarget }) => {
          updateMessage(currentTarget)
          onChange(currentTarget.value)
        }}
      />
    </LabelledControl>
  )
}

interface FileProps extends Labelled {
  readonly file: File | null
  readonly onChange: (file: File | null) => void
  /** Extensions or media types, as the attribute `accept` takes them. */
  readonly accept?: string
}

/** A required file, which can also be dropped. The browser's own control is invisible above the visible one. */
export const FileField = ({ accept, file, onChange, ...texts }: FileProps) => {
  const t = useText(words)
  const id = useId()
  const { field, onInvalid, nativeMessage, updateMessage } = useNativeValidation(false)
  return (
    <LabelledControl {...texts} id={id} nativeMessage={nativeMessage}>
      <span className={css["file"]}>
        <input
          {...controlAttributes(id, texts, nativeMessage)}
          {...(accept === undefined ? {} : { accept })}
          ref={(input) => {
            field.current = input
          }}
          type="file"
          required
          onInvalid={onInvalid}
          onChange={({ currentTarget }) => {
            updateMessage(currentTarget)
            onChange(currentTarget.files?.[0] ?? null)
          }}
        />
        <span aria-hidden className={css["pick"]}>
          {t.choose}
        </span>
        <span aria-hidden className={css["chosen"]}>
          {file === null ? t.noFile : <span lang="">{file.name}</span>}
        </span>
      </span>
    </LabelledControl>
  )
}

interface SelectProps<K extends string> extends Labelled {
  /** Key and label of each choice, in order. */
  readonly options: ReadonlyArray<readonly [K, string]>
  readonly value: K
  readonly onChange: (value: K) => void
  readonly disabled?: boolean
}

/** The browser's own select, which works with keyboards, phones and screen readers. */
export const Select = <K extends string>({
  options,
  value,
  onChange,
  disabled = false,
  ...texts
}: SelectProps<K>) => {
  const id = useId()
  return (
    <LabelledControl {...texts} id={id}>
      <span className={`${css["choice"]} ${texts.compact === true ? css["compact"] : ""}`}>
        <select
          {...controlAttributes(id, texts, "")}
          className={css["input"]}
          disabled={disabled}
          value={value}
          onChange={({ currentTarget }) => {
            const chosen = options.find(([option]) => option === currentTarget.value)
            if (chosen !== undefined) onChange(chosen[0])
          }}
        >
          {options.map(([key, words]) => (
            <option key={key} value={key}>
              {words}
            </option>
          ))}
        </select>
        <ChevronDown aria-hidden size={15} />
      </span>
    </LabelledControl>
  )
}
