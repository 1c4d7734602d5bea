/** The menu of MoreMenu.tsx with its items, which opens when it appears. */
import { Ellipsis } from "lucide-react"
import { useEffect, useState } from "react"
import { Menu, MenuItem, MenuTrigger, Popover } from "react-aria-components"
import { everywhere } from "../../text/everywhere.ts"
import { useText } from "../../text/Language.tsx"
import { Button } from "../Button.tsx"
import css from "../MoreMenu.module.css"

interface Props {
  readonly title: string
  readonly onAction: () => void
}

export const MoreItems = ({ onAction, title }: Props) => {
  const t = useText(everywhere)
  const [isOpen, setOpen] = useState(false)
  // After the button has the focus, which is given back to it when the menu closes.
  useEffect(() => setOpen(true), [])
  return (
    <MenuTrigger isOpen={isOpen} onOpenChange={setOpen}>
      <Button kind="quiet" icon aria-label={t.more} autoFocus>
        <Ellipsis aria-hidden size={18} />
      </Button>
      <Popover className={css["popover"] ?? ""} placement="bottom end">
        <Menu className={css["menu"] ?? ""} aria-label={t.more}>
          <MenuItem className={css["danger"] ?? ""} onAction={onAction}>
            {title}
          </MenuItem>
        </Menu>
      </Popover>
    </MenuTrigger>
  )
}
