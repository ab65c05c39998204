spoor doctor please
