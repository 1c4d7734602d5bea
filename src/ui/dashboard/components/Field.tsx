/** Labelled inputs: a line, a long text, a file and a choice of one, each with its help and its error. */
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
  /** Page and heading of the documentation about it. */
  readonly guide?: string | undefined
  /** The error of the service. It replaces the browser's own message. */
  readonly error?: string | undefined
  /** The label is only for screen readers. */
  readonly compact?: boolean
}

interface FrameProps extends Labelled {
  readonly id: string
  /** The browser's own message about what was typed. */
  readonly refused?: string
  readonly children: ReactNode
}

/** A label, a control, what explains it and what is wrong with it. */
const Frame = ({ id, label, help, guide, error, refused = "", compact = false, children }: FrameProps) => {
  const wrong = error ?? refused
  return (
    <div className={css["field"]}>
      <label htmlFor={id} className={compact ? "visually-hidden" : css["label"]}>
        {label}
      </label>
      {children}
      {wrong === "" ? null : (
        <span id={`${id}-error`} className={css["error"]}>
          {wrong}
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

/** Attributes that connect a control with the texts of its {@link Frame}. */
const controlAttributes = (id: string, { error, help }: Labelled, refused: string) => {
  const isWrong = error !== undefined || refused !== ""
  const parts = [...(isWrong ? [`${id}-error`] : []), ...(help === undefined ? [] : [`${id}-help`])]
  return {
    id,
    ...(isWrong ? { "aria-invalid": true } : {}),
    ...(parts.length === 0 ? {} : { "aria-describedby": parts.join(" ") })
  }
}

type Input = HTMLInputElement | HTMLTextAreaElement

/** Shows the browser's own message below its field, where it stays, and gives the first wrong field the focus. */
const useNativeMessage = (autoFocus: boolean) => {
  const [refused, setRefused] = useState("")
  const field = useRef<Input>(null)
  useEffect(() => {
    if (autoFocus) field.current?.focus()
  }, [autoFocus])
  return {
    refused,
    field,
    /** After a change: what is right now is no longer called wrong. */
    review: (input: Input) => {
      if (refused !== "") setRefused(input.validationMessage)
    },
    onInvalid: (event: FormEvent<Input>) => {
      event.preventDefault()
      const { currentTarget } = event
      setRefused(currentTarget.validationMessage)
      const isFirst = currentTarget.form?.querySelector(":is(input, textarea):invalid") === currentTarget
      if (isFirst) currentTarget.focus()
    }
  }
}

interface TextProps extends Labelled {
  readonly value: string
  readonly onChange: (value: string) => void
}

interface LineProps
  extends TextProps, Omit<ComponentProps<"input">, "className" | "id" | "onChange" | "ref" | "value"> {
  /** The unit, displayed beside the number. */
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
}: LineProps) => {
  const id = useId()
  const texts = { label, help, guide, error, compact }
  const { field, onInvalid, refused, review } = useNativeMessage(autoFocus)
  return (
    <Frame {...texts} id={id} refused={refused}>
      <span className={unit === undefined ? css["line"] : css["measured"]}>
        <input
          {...props}
          {...controlAttributes(id, texts, refused)}
          ref={(input) => {
            field.current = input
          }}
          className={css["input"]}
          onInvalid={onInvalid}
          onChange={({ currentTarget }) => {
            review(currentTarget)
            onChange(currentTarget.value)
          }}
        />
        {unit === undefined ? null : <span aria-hidden>{unit}</span>}
      </span>
    </Frame>
  )
}

interface LongProps
  extends TextProps, Omit<ComponentProps<"textarea">, "className" | "id" | "onChange" | "ref" | "value"> {
  readonly mono?: boolean
}

export const LongText = ({
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
}: LongProps) => {
  const id = useId()
  const texts = { label, help, guide, error, compact }
  const { field, onInvalid, refused, review } = useNativeMessage(autoFocus)
  return (
    <Frame {...texts} id={id} refused={refused}>
      <textarea
        {...props}
        {...controlAttributes(id, texts, refused)}
        ref={(input) => {
          field.current = input
        }}
        className={`${css["input"]} ${css["long"]} ${mono ? css["mono"] : ""}`}
        rows={rows}
        onInvalid={onInvalid}
        onChange={({ currentTarget }) => {
          review(currentTarget)
          onChange(currentTarget.value)
        }}
      />
    </Frame>
  )
}

interface FileProps extends Labelled {
  readonly file: File | null
  readonly onChange: (file: File | null) => void
  /** The endings or media types that the browser offers first. */
  readonly accept?: string
}

/** A file, which can also be dropped on it. Required. The browser's own control lies over what is seen of it. */
export const FileField = ({ accept, file, onChange, ...texts }: FileProps) => {
  const t = useText(words)
  const id = useId()
  const { field, onInvalid, refused, review } = useNativeMessage(false)
  return (
    <Frame {...texts} id={id} refused={refused}>
      <span className={css["file"]}>
        <input
          {...controlAttributes(id, texts, refused)}
          {...(accept === undefined ? {} : { accept })}
          ref={(input) => {
            field.current = input
          }}
          type="file"
          required
          onInvalid={onInvalid}
          onChange={({ currentTarget }) => {
            review(currentTarget)
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
    </Frame>
  )
}

interface SelectProps<K extends string> extends Labelled {
  /** Key and label of each choice, in order. */
  readonly options: ReadonlyArray<readonly [K, string]>
  readonly value: K
  readonly onChange: (value: K) => void
  readonly disabled?: boolean
}

/** A choice of one of several: the browser's own, which keyboards, phones and screen readers know. */
export const Select = <K extends string>({
  options,
  value,
  onChange,
  disabled = false,
  ...texts
}: SelectProps<K>) => {
  const id = useId()
  return (
    <Frame {...texts} id={id}>
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
    </Frame>
  )
}
