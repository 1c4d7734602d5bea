/** Labelled inputs: text, long text, choice and switch, each with its help and its error. */
import {
  FieldError,
  Input,
  Label,
  Switch as AriaSwitch,
  Text,
  TextArea as AriaTextArea,
  TextField as AriaTextField,
  type TextFieldProps
} from "react-aria-components"
import css from "./Field.module.css"
import { GuideLink } from "../text/GuideLink.tsx"

export { Select } from "./select/Select.tsx"

interface Labelled {
  readonly label: string
  readonly help?: string
  /** Page and heading of the documentation about it. */
  readonly guide?: string
  /** Replaces the browser's own message. */
  readonly error?: string | undefined
}

interface TextProps extends Labelled, Omit<TextFieldProps, "className" | "children"> {
  readonly placeholder?: string
}

interface LineProps extends TextProps {
  /** Hides the label visually. Screen readers still read it. */
  readonly compact?: boolean
}

/** What explains a field, and where to read more. */
export const Help = ({
  guide,
  help,
  label
}: {
  readonly label: string
  readonly help: string | undefined
  readonly guide: string | undefined
}) =>
  help === undefined ? null : (
    <Text slot="description" className={css["help"] ?? ""}>
      {help} {guide === undefined ? null : <GuideLink guide={guide} about={label} />}
    </Text>
  )

export const TextField = ({
  label,
  help,
  guide,
  error,
  placeholder = "",
  compact = false,
  ...props
}: LineProps) => (
  <AriaTextField
    {...props}
    // What the service refused must not keep the next try from being sent.
    validationBehavior={error === undefined ? "native" : "aria"}
    isInvalid={error !== undefined}
    className={css["field"] ?? ""}
  >
    <Label className={compact ? "visually-hidden" : (css["label"] ?? "")}>{label}</Label>
    <Input className={css["input"] ?? ""} placeholder={placeholder} />
    <Help label={label} help={help} guide={guide} />
    <FieldError className={css["error"] ?? ""}>{error}</FieldError>
  </AriaTextField>
)

interface LongTextProps extends TextProps {
  readonly rows?: number
  readonly mono?: boolean
}

export const LongText = ({
  label,
  help,
  guide,
  error,
  placeholder = "",
  rows = 4,
  mono = false,
  ...props
}: LongTextProps) => (
  <AriaTextField
    {...props}
    // What the service refused must not keep the next try from being sent.
    validationBehavior={error === undefined ? "native" : "aria"}
    isInvalid={error !== undefined}
    className={css["field"] ?? ""}
  >
    <Label className={css["label"] ?? ""}>{label}</Label>
    <AriaTextArea
      className={`${css["input"]} ${css["long"]} ${mono ? css["mono"] : ""}`}
      rows={rows}
      placeholder={placeholder}
    />
    <Help label={label} help={help} guide={guide} />
    <FieldError className={css["error"] ?? ""}>{error}</FieldError>
  </AriaTextField>
)

interface SwitchProps {
  readonly label: string
  readonly isSelected: boolean
  readonly onChange: (on: boolean) => void
  readonly isDisabled?: boolean
}

export const Switch = ({ label, ...props }: SwitchProps) => (
  <AriaSwitch {...props} className={css["switch"] ?? ""}>
    <span aria-hidden className={css["track"] ?? ""} />
    {label}
  </AriaSwitch>
)
