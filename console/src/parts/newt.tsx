// The newt that the broker is named after, beside its name.

export function Wordmark() {
  return (
    <span class="wordmark">
      <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <path class="newt-body" d="M21.500 7.500C15.500 9 12.500 12.500 15 18" />
        <path class="newt-tail" d="M15 18C17.500 22.500 15.500 27 8.500 26.500" />
        <path class="newt-tip" d="M8.500 26.500C6.500 26.300 5.200 25.300 4.500 24" />
        <path
          class="newt-legs"
          d="M15.500 10L11.200 8.800 10 6.800M19 11.500L22.200 14.500 24.800 14.200M13.500 17.500L9 17.500 7.300 19.300M17 17L21 19.800 21.200 22.300"
        />
        <ellipse class="newt-head" cx="22.500" cy="6.700" rx="4.500" ry="3.500" transform="rotate(-22 22.500 6.700)" />
        <circle class="newt-eye" cx="23.200" cy="4.700" r="0.8" />
        <circle class="newt-eye" cx="24.800" cy="7.900" r="0.8" />
      </svg>
      <span>imori</span>
    </span>
  );
}
