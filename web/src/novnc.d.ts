declare module "@novnc/novnc" {
  export interface RfbEvents {
    connect: CustomEvent<object>;
    disconnect: CustomEvent<{ clean: boolean }>;
    securityfailure: CustomEvent<{ status: number; reason?: string }>;
    clipboard: CustomEvent<{ text: string }>;
    desktopname: CustomEvent<{ name: string }>;
  }

  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, urlOrChannel: string | WebSocket, options?: object);
    viewOnly: boolean;
    scaleViewport: boolean;
    focusOnClick: boolean;
    background: string;
    qualityLevel: number;
    compressionLevel: number;
    clipboardPasteFrom(text: string): void;
    focus(): void;
    blur(): void;
    disconnect(): void;
    addEventListener<K extends keyof RfbEvents>(
      type: K,
      listener: (event: RfbEvents[K]) => void,
    ): void;
  }
}
