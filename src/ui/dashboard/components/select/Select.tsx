/**
 * A labelled choice of one of several. Its list is code of 45 kB: it is loaded when the button is pointed at or focused.
 * A focused button is then replaced by the list's own, closed, so that arrow keys and typing choose as they always do.
 */
import { type ComponentType, type RefObject, useId, useRef, useState } from "react"
import css from "../Field.module.css"
import type { ListSelectProps, SelectProps } from "./SelectParts.ts"

const load = () => import("./ListSelect.tsx").then(({ ListSelect }) => ListSelect)

interface ClosedProps extends Omit<SelectProps<string>, "onChange"> {
  readonly button: RefObject<HTMLButtonElement | null>
  readonly onPoint: () => void
  readonly onKeyboardFocus: () => void
  readonly onOpen: () => void
}

const ClosedSelect = ({
  button,
  compact = false,
  help,
  isDisabled = false,
  label,
  onKeyboardFocus,
  onOpen,
  onPoint,
  options,
  value
}: ClosedProps) => {
  const id = useId()
  return (
    // Laid out as the fields of the component library are.
    <div className={css["field"]} data-rac="">
      <span id={`${id}label`} className={compact ? "visually-hidden" : css["label"]}>
        {label}
      </span>
      <button
        ref={button}
        type="button"
        className={`${css["input"]} ${css["select"]} ${compact ? css["compact"] : ""}`}
        aria-labelledby={`${id}value ${id}label`}
        aria-describedby={help === undefined ? undefined : `${id}help`}
        aria-haspopup="listbox"
        aria-expanded={false}
        disabled={isDisabled}
        onPointerEnter={onPoint}
        // The button of a press stays: replaced before its release, it would not be pressed.
        onFocus={({ currentTarget }) => {
          if (currentTarget.matches(":focus-visible")) onKeyboardFocus()
        }}
        onClick={onOpen}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return
          event.preventDefault()
          onOpen()
        }}
      >
        <span id={`${id}value`}>{options.find(([key]) => key === value)?.[1]}</span>
        <span aria-hidden className={css["chevron"]} />
      </button>
      {help === undefined ? null : (
        <span id={`${id}help`} className={css["help"]}>
          {help}
        </span>
      )}
    </div>
  )
}

export const Select = <K extends string>({ onChange, ...props }: SelectProps<K>) => {
  const button = useRef<HTMLButtonElement>(null)
  const [List, setList] = useState<ComponentType<ListSelectProps>>()
  const [isPressed, setPressed] = useState(false)
  const [failure, setFailure] = useState<{ readonly cause: unknown }>()
  // Told by the page's error boundary.
  if (failure !== undefined) throw failure.cause
  if (List === undefined) {
    return (
      <ClosedSelect
        {...props}
        button={button}
        // Without a connection it is loaded again, and a failure told, with the press.
        onPoint={() => void load().catch(() => {})}
        onKeyboardFocus={() =>
          void load().then(
            (loaded) => {
              if (document.activeElement === button.current) setList(() => loaded)
            },
            () => {}
          )
        }
        onOpen={() => {
          setPressed(true)
          void load().then(
            (loaded) => setList(() => loaded),
            (cause: unknown) => setFailure({ cause })
          )
        }}
      />
    )
  }
  const choose = (key: string) => {
    const chosen = props.options.find(([option]) => option === key)
    if (chosen !== undefined) onChange(chosen[0])
  }
  return <List {...props} onChange={choose} opensAtOnce={isPressed} />
}
